"""The failing models of a runner, from a failed attempt until a reply; each is reported once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import structlog

from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run
from socratic_bench.domain.trouble import NO_BATCH, NO_TEXT, Trouble, one_line
from socratic_bench.errors import ModelCallFailed
from socratic_bench.ports.stores.leases import ModelInHand
from socratic_bench.scoring.exchange import Status
from socratic_runner.conversations.call_outcomes import CallObserver
from socratic_runner.models.stop_reasons import Ended, how_it_ended

log = structlog.get_logger(__name__)

WITHOUT_TEXT: Final = 3
"""Answers in a row without text after which a person is told."""

MOST_SHOWN: Final = 250
"""The most troubles shown at a time: each heartbeat carries them."""

Tell = Callable[[Trouble], None]


def tell_the_log(trouble: Trouble) -> None:
    """Warn of a model in the log of the runner."""
    seconds = trouble.next_in_seconds
    log.warning(
        "model in trouble",
        model=trouble.model_id,
        kind=trouble.kind,
        reason=trouble.reason,
        attempt=trouble.attempt,
        attempts=trouble.attempts,
        next_try_in_seconds=None if seconds is None else round(seconds, 1),
        correlation_id=trouble.experiment_id,
    )


class Troubles:
    """The troubles of the models in a runner's hand: the latest failure of each."""

    def __init__(
        self,
        observer: CallObserver,
        tell: Tell,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`observer` hears of every failure, `tell` of each failing model once, until it replies.
        `clock` returns monotonic seconds.
        """
        self._observer = observer
        self._tell = tell
        self._clock = clock
        self._news = TroubleNews(clock)
        self._present: dict[ModelInHand, tuple[Trouble, float]] = {}
        """With when each failed."""

        self._without_text = Counter[ModelInHand]()
        """Answers in a row without text."""

    def failed(
        self,
        run: Run,
        failure: ModelCallFailed,
        attempt: int,
        attempts: int,
        next_in_seconds: float | None,
        *,
        waits_for_key: bool = False,
    ) -> None:
        """Note a failed attempt; the run's next one comes at the given time, or never.

        `waits_for_key` tells that the model's runs stay pending until its key is renewed.
        """
        model = model_of(run)
        reason = one_line(str(failure))
        if waits_for_key:
            reason = f"{reason}; its other runs wait for that"
        trouble = Trouble(
            experiment_id=run.experiment_id,
            model_id=run.model_id,
            kind=failure.kind,
            reason=reason,
            attempt=attempt,
            attempts=attempts,
            next_in_seconds=next_in_seconds,
        )
        self._remove(model)
        self._present[model] = trouble, self._clock()
        self._observer.troubled(run.model_id, failure.kind)
        if self._news.is_new(trouble):
            self._tell(trouble)

    def replied(self, run: Run) -> None:
        """Note a reply of the model: its trouble is over."""
        if self._present and self._remove(model_of(run)):
            self._news.over(run.experiment_id, run.model_id)

    def answered(self, response: Response) -> None:
        """Note an answer; tells once of a model whose answers have no text again and again: its
        reasoning uses up the tokens, or a gateway loses the text of streams.

        Each such answer is paid for, and none has a score.
        """
        model = model_of(response.run)
        if response.status is not Status.EMPTY:
            self._without_text.pop(model, None)
            return
        self._without_text[model] += 1
        if self._without_text[model] == WITHOUT_TEXT:
            why = why_without_text(response)
            reason = f"{WITHOUT_TEXT} answers in a row have no text: {why}"
            self._tell_once(response.run, NO_TEXT, reason)

    def batch_refused(self, run: Run, failure: ModelCallFailed) -> None:
        """Tell that a model's provider takes no batches."""
        # What follows is the remedy for the address of a single call.
        self._tell_once(run, NO_BATCH, one_line(str(failure).partition("; ")[0]))

    def _tell_once(self, run: Run, kind: str, reason: str) -> None:
        """Tell what is no failure of a call."""
        trouble = Trouble(
            experiment_id=run.experiment_id,
            model_id=run.model_id,
            kind=kind,
            reason=reason,
            attempt=0,
            attempts=0,
            next_in_seconds=None,
        )
        self._tell(trouble)

    def forget(self, models: Iterable[ModelInHand]) -> None:
        """Forget models without runs in hand: their present state is unknown."""
        if self._present or self._without_text:
            for model in models:
                self._remove(model)
                self._without_text.pop(model, None)

    def present(self) -> list[Trouble]:
        """The troubles at this moment, the latest ones."""
        now = self._clock()
        latest = list(self._present.values())[-MOST_SHOWN:]
        return [_at(now, trouble, failed_at) for trouble, failed_at in latest]

    def _remove(self, model: ModelInHand) -> bool:
        """Forget a model; tells whether it had a trouble."""
        trouble, _ = self._present.pop(model, (None, 0.0))
        if trouble is not None:
            self._observer.untroubled(model.model_id, trouble.kind)
        return trouble is not None


def why_without_text(response: Response) -> str:
    """Return what an answer without text spent its tokens on, how it ended, and the remedy."""
    usage, reason, told = response.usage, response.stop_reason, []
    if usage.output_tokens is not None:
        tokens = f"{usage.output_tokens:,} output tokens"
        thought = usage.reasoning_tokens if usage.unsplit_output_tokens is None else 0
        told.append(f"{thought:,} of {tokens} were reasoning" if thought else tokens)
    if reason is not None:
        told.append(f"stop reason `{one_line(reason)}`")
    remedy = "if a gateway loses the text of streams, set options: {stream: false}"
    if reason is not None and how_it_ended(reason) == Ended(Status.TRUNCATED):
        remedy = "raise parameters.max_tokens"
    return "; ".join([", ".join(told), remedy] if told else [remedy])


def model_of(run: Run) -> ModelInHand:
    """Return the model of a run, within its experiment."""
    return ModelInHand(run.experiment_id, run.model_id)


def _at(now: float, trouble: Trouble, failed_at: float) -> Trouble:
    left = trouble.next_in_seconds
    if left is None:
        return trouble
    return trouble.model_copy(update={"next_in_seconds": max(0.0, left - (now - failed_at))})


REPORT_AGAIN_SECONDS: Final = 60.0
"""Seconds between two reports of a model that answers and fails in turns."""

MOST_REMEMBERED: Final = 1_000
"""The most reported models in memory; the oldest go first."""


@dataclass(slots=True)
class _Report:
    at: float
    over: bool = False


class TroubleNews:
    """Remembers reported troubles: each model's counts as new again once it is over."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds that never go back."""
        self._clock = clock
        self._reports: dict[tuple[str, str], _Report] = {}

    def is_new(self, trouble: Trouble) -> bool:
        """Whether to report this trouble. It counts as reported from now on."""
        model, now = (trouble.experiment_id, trouble.model_id), self._clock()
        report = self._reports.get(model)
        if report is not None and now - report.at < REPORT_AGAIN_SECONDS:
            report.over = False
        if report is not None and not report.over:
            return False
        self._reports.pop(model, None)
        self._reports[model] = _Report(now)
        if len(self._reports) > MOST_REMEMBERED:
            del self._reports[next(iter(self._reports))]
        return True

    def over(self, experiment_id: str, model_id: str) -> None:
        """Note that the model replied."""
        if report := self._reports.get((experiment_id, model_id)):
            report.over = True

    def new_among(self, troubles: Iterable[Trouble]) -> list[Trouble]:
        """Return the troubles to report, of all present ones. A model without one has replied."""
        troubles = list(troubles)
        present = {(each.experiment_id, each.model_id) for each in troubles}
        for model in self._reports.keys() - present:
            self._reports[model].over = True
        return [each for each in troubles if self.is_new(each)]
