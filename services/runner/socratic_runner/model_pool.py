"""The models that a runner calls, each with one client, opened on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog

from socratic_bench.concurrency.deadlines import finish_despite_cancel
from socratic_bench.domain.experiment.manifest import (
    Experiment,
    Grader,
    Manifest,
    Student,
    TutorModel,
)
from socratic_bench.domain.grading import HIGHEST_GRADE, grade_of
from socratic_bench.domain.response import Usage
from socratic_bench.domain.student import fault_of
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import ModelClient, Question, Reply
from socratic_bench.ports.stores.leases import ModelInHand
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.fidelity.facts import says_key
from socratic_bench.scoring.socratic_v2.reading import normalised
from socratic_bench.scoring.visible_text import read
from socratic_runner.last_uses import MOST_CLIENTS, LastUses
from socratic_runner.limits.breaker import BUSY_SILENCE, Breaker
from socratic_runner.limits.concurrency_limiter import ConcurrencyLimiter
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.models.http.batches import HttpBatches

SHOWN_CHARACTERS: Final = 60
"""The most of a useless reply that its failure repeats."""


Fault = Callable[[Question, Reply], str | None]
"""Returns why a reply is of no use, in words; None for one of use."""


class CheckingClient(ModelClient):
    """Passes on the replies of use."""

    def __init__(self, client: ModelClient, fault: Fault) -> None:
        self._client = client
        self._fault = fault
        self.batches: HttpBatches | None = getattr(client, "batches", None)
        if self.batches is not None:
            self.batches.check = self._checked

    @property
    def concurrency(self) -> int | None:
        return self._client.concurrency

    @property
    def answers_at_once(self) -> bool:
        return self._client.answers_at_once

    async def ask(self, question: Question) -> Reply:
        """Return a reply of use.

        Raises what the model's client raises, and ModelCallFailed for any other reply.
        """
        return self._checked(question, await self._client.ask(question))

    def _checked(self, question: Question, reply: Reply) -> Reply:
        if (fault := self._fault(question, reply)) is None:
            return reply
        message = f"{fault}: {reply.text[:SHOWN_CHARACTERS]!r}"
        raise ModelCallFailed(FailureKind.MALFORMED_REPLY, message, retryable=True)

    async def close(self) -> None:
        await self._client.close()


def _without_grade(_: Question, reply: Reply) -> str | None:
    # A reply that was cut off may hold the first digit of 10.
    if reply.status is Status.OK and grade_of(reply.text) is not None:
        return None
    return f"the grader's reply ({reply.status}) is not a whole number from 0 to {HIGHEST_GRADE}"


def _no_message(manifest: Manifest, question: Question, reply: Reply) -> str | None:
    key = manifest.scenarios_by_id[question.run.scenario_id].key
    text = read(reply.text).text
    fault = fault_of(text, reply.status, says_key=says_key(normalised(text), key))
    return None if fault is None else f"the student's message {fault}"


log = structlog.get_logger(__name__)

CLOSE_SECONDS: Final = 5.0
"""Seconds that closing the clients may take after the runner was cancelled."""

_GRADER: Final = "grader"
_STUDENT: Final = "student"
"""No ids of models: each has a slash."""

OpenClient = Callable[[TutorModel], ModelClient]


@dataclass(frozen=True, slots=True, eq=False)
class CalledModel:
    """A model of an experiment with the parts that a call needs: client, limiter and breaker."""

    entry: TutorModel
    """The model as its experiment plans it, with its price and limits."""

    client: ModelClient
    limiter: ConcurrencyLimiter
    """Shared by all experiments that call the same model."""

    breaker: Breaker

    @property
    def batches(self) -> HttpBatches | None:
        """Access to its provider's batches, if its calls go there."""
        # No part of the port: most providers have none.
        batches: HttpBatches | None = getattr(self.client, "batches", None)
        return batches

    @property
    def in_batch(self) -> CalledModel:
        """The model at the price of its provider's batches."""
        price = self.entry.price
        if price is None:
            return self
        return replace(self, entry=self.entry.model_copy(update={"price": price.halved}))

    @property
    def refusal(self) -> ModelCallFailed | None:
        """The failure of every new run of a stopped model; None while the model may be called."""
        longest = self.entry.limits.run_timeout_seconds
        return self.breaker.refusal or self.limiter.refusal(longest)

    @property
    def deadline(self) -> float:
        """Seconds that one call may take; more for the first call to a server that loads models."""
        # No part of the port: most clients have nothing to load.
        loading: float | None = getattr(self.client, "loading_seconds", None)
        return max(self.entry.limits.timeout_seconds, loading or 0.0)

    def cost_nanodollars(self, usage: Usage) -> int | None:
        """The cost of a call; None if its price or its tokens are unknown."""
        price, output_tokens = self.entry.price, usage.output_tokens
        if price is None or output_tokens is None or usage.input_tokens is None:
            return None
        return price.cost_nanodollars(
            usage.input_tokens, output_tokens, usage.cached_tokens, usage.cache_write_tokens
        )

    def cost_is_upper_bound(self, usage: Usage) -> bool:
        """Whether the cost of a call takes tokens of a cache at more than an unknown price."""
        price = self.entry.price
        return price is not None and bool(
            (usage.cached_tokens and price.cached_input_per_million is None)
            or (usage.cache_write_tokens and price.cache_write_per_million is None)
        )


class ModelPool:
    """Opens one client per model of an experiment, and closes it when it is idle."""

    def __init__(
        self,
        open_client: OpenClient,
        limiters: ConcurrencyLimiters,
        *,
        busy_silence: float = BUSY_SILENCE,
    ) -> None:
        """A model that only answers "busy" for `busy_silence` seconds is stopped."""
        self._open_client = open_client
        self._busy_silence = busy_silence
        self._limiters = limiters
        self._models: dict[ModelInHand, CalledModel] = {}
        self._uses = LastUses[ModelInHand](MOST_CLIENTS)
        self._closing: set[asyncio.Task[None]] = set()

    def model(self, experiment: Experiment, model_id: str) -> CalledModel:
        """Return a model of an experiment, with its present price and limits.

        Raises InvalidInput with the reason if the model cannot be called.
        """
        key = ModelInHand(experiment.experiment_id, model_id)
        entry = experiment.manifest.models_by_id[model_id]
        return self._opened(key, entry, self._open_client, len(experiment.manifest.scenarios))

    def grader(self, experiment: Experiment, grader: Grader) -> CalledModel:
        """Return the grader of an experiment, as `model` returns a model.

        Its client is its own, even where the same model is under test.
        """
        return self._opened(
            grader_in_hand(experiment),
            grader.model,
            lambda entry: CheckingClient(self._open_client(entry), _without_grade),
            len(experiment.manifest.scenarios),
        )

    def student(self, experiment: Experiment, student: Student) -> CalledModel:
        """Return the model that plays the student, as `grader` returns the grader."""
        fault = partial(_no_message, experiment.manifest)
        return self._opened(
            student_in_hand(experiment),
            student.model,
            lambda entry: CheckingClient(self._open_client(entry), fault),
            len(experiment.manifest.scenarios),
        )

    def _breaker(self, entry: TutorModel, scenarios: int) -> Breaker:
        return Breaker(entry.id, busy_silence=self._busy_silence, scenarios=scenarios)

    def _opened(
        self, key: ModelInHand, entry: TutorModel, open_client: OpenClient, scenarios: int
    ) -> CalledModel:
        self._uses.note(key)
        model = self._models.get(key)
        if model is None or model.entry is not entry:
            # Everything that decides about responses stays the same within an experiment.
            client = model.client if model else open_client(entry)
            breaker = model.breaker if model else self._breaker(entry, scenarios)
            limiter = self._limiters.limiter_for(entry, client.concurrency)
            model = self._models[key] = CalledModel(entry, client, limiter, breaker)
        return model

    def __iter__(self) -> Iterator[CalledModel]:
        """Iterate over the models that are open."""
        return iter(self._models.values())

    def close_idle(self, in_use: Callable[[], AbstractSet[ModelInHand]]) -> None:
        """Begin, now and then, to close clients that were idle for long, and those beyond the most.

        Clients of the models `in_use` stay open. Limiters at rest go with the last client.
        """
        if not self._uses.look_is_due:
            return
        for key in self._uses.take_idle(in_use()):
            if model := self._models.pop(key, None):
                closing = asyncio.create_task(_close(model.client))
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
        self._limiters.forget_unused(model.limiter for model in self)

    async def close(self) -> None:
        """Close every client, even if closing one fails or the caller is cancelled."""
        clients = [model.client for model in self._models.values()]
        self._models = {}
        await finish_despite_cancel(
            asyncio.gather(*map(_close, clients), *self._closing), patience=CLOSE_SECONDS
        )


def grader_in_hand(experiment: Experiment) -> ModelInHand:
    """Return the key of the grader's client, which no model under test has."""
    return ModelInHand(experiment.experiment_id, _GRADER)


def student_in_hand(experiment: Experiment) -> ModelInHand:
    """Return the key of the client of the student's model."""
    return ModelInHand(experiment.experiment_id, _STUDENT)


async def _close(client: ModelClient) -> None:
    try:
        await client.close()
    except Exception as error:  # noqa: BLE001 - whatever it is, the others are closed
        log.warning("a model client could not be closed", reason=str(error))
