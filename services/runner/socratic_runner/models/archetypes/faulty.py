"""The tutor that fails in every way of a provider; equal calls fail alike."""

from __future__ import annotations

from dataclasses import dataclass

from socratic_bench.domain.response import Usage
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import Question, Reply
from socratic_bench.scoring.exchange import Status
from socratic_runner.models.archetypes import lecturer, socratic
from socratic_runner.models.archetypes.moment import Draw, Moment, input_tokens_of, tokens_of

RETRY_AFTER = 0.5
"""The wait that a rate-limited reply asks for, in seconds."""

_WORDS_BEFORE_A_SHORT_CUT, _WORDS_BEFORE_A_LATE_CUT = 60, 440
_LONGEST_MEMORY = 10_000


@dataclass(frozen=True, slots=True)
class Failing:
    """A call that fails, always or for the first few attempts."""

    kind: FailureKind
    message: str
    failures: int | None = None
    """The number of attempts that fail before one succeeds; None: all of them."""

    retryable: bool = True
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Answering:
    """A call that gets a reply; its status may leave the reply unscored."""

    status: Status
    stop_reason: str
    words: int | None = None
    """The number of tokens after which the reply is cut off; None: it is whole."""

    text: str | None = None
    """The text of the reply; None: a tutor's usual text."""


GOOD = Answering(Status.OK, "stop")
BEHAVIOURS: tuple[Failing | Answering, ...] = (
    GOOD,
    Answering(Status.REFUSED, "refusal", text="I am sorry, I cannot help with this request."),
    Answering(Status.OK, "stop", text=""),
    Answering(Status.TRUNCATED, "length", words=_WORDS_BEFORE_A_SHORT_CUT),
    Answering(Status.TRUNCATED, "length", words=_WORDS_BEFORE_A_LATE_CUT),
    Failing(FailureKind.RATE_LIMITED, "too many requests", failures=1, retry_after=RETRY_AFTER),
    Failing(FailureKind.OVERLOADED, "the model is overloaded", failures=2),
    Failing(FailureKind.UNREACHABLE, "no connection to the provider", failures=2),
    Failing(FailureKind.TIMEOUT, "no complete reply before the deadline", failures=1),
    Failing(FailureKind.CUT_STREAM, "the stream ended without a stop reason", failures=1),
    Failing(FailureKind.MALFORMED_REPLY, "the reply is not JSON: line 1 column 1", failures=1),
    Failing(FailureKind.UNKNOWN, "the connection was closed without a word"),
    Failing(FailureKind.REFUSED, "the content filter rejected the question", retryable=False),
    Failing(FailureKind.CONTEXT_TOO_LONG, "9,000 tokens are too many for 8,192", retryable=False),
    Failing(FailureKind.BAD_REQUEST, "temperature: not supported here", retryable=False),
    Failing(FailureKind.AUTH, "the key may not use this model", retryable=False),
    Failing(FailureKind.NOT_FOUND, "there is no such deployment", retryable=False),
)


class FaultyTutor:
    """An archetype of an unreliable provider; not a model.

    Scenario, repeat, turn and attempt determine each outcome. Attempts are counted in memory until
    one succeeds, so a passing failure returns after a restart.
    """

    def __init__(self, latency_ms: int) -> None:
        self._latency_ms = latency_ms
        self._attempts: dict[tuple[str, int], int] = {}

    def reply(self, question: Question) -> Reply:
        """Return the reply to one attempt. Raises ModelCallFailed for an attempt that fails."""
        behaviour = behaviour_at(question.run.scenario_id, question.run.repeat, question.turn)
        if isinstance(behaviour, Failing):
            self._fail_unless_passed(behaviour, question)
            behaviour = GOOD
        text = _text(behaviour, question)
        return Reply(
            text=text,
            status=behaviour.status,
            usage=Usage(
                visible_output_tokens=tokens_of(text), input_tokens=input_tokens_of(question)
            ),
            latency_ms=self._latency_ms,
            stop_reason=behaviour.stop_reason,
            model_version="reference-1",
        )

    def _fail_unless_passed(self, failing: Failing, question: Question) -> None:
        key = (question.run.run_id, question.turn)
        attempt = self._attempts.pop(key, 0) + 1
        if failing.failures is not None:
            if attempt > failing.failures:
                return
            self._remember(key, attempt)
        raise ModelCallFailed(
            failing.kind,
            failing.message,
            retryable=failing.retryable,
            retry_after=failing.retry_after,
        )

    def _remember(self, key: tuple[str, int], attempt: int) -> None:
        self._attempts[key] = attempt
        if len(self._attempts) > _LONGEST_MEMORY:
            del self._attempts[next(iter(self._attempts))]


def behaviour_at(scenario_id: str, repeat: int, turn: int) -> Failing | Answering:
    """Return the behaviour at one turn of a run."""
    draw = Draw("unreliable", scenario_id, repeat, turn)
    return draw.one(BEHAVIOURS)


def _text(behaviour: Answering, question: Question) -> str:
    if behaviour.text is not None:
        return behaviour.text
    run = question.run
    moment = Moment(
        "faulty",
        run.scenario_id,
        run.dimension,
        question.student_message,
        question.turn,
        run.repeat,
    )
    if behaviour.words is None:
        return socratic.answer(moment)
    words = " ".join(
        paragraph for _ in range(3) for paragraph in lecturer.explanation(moment, 6)
    ).split()
    return " ".join(words[: behaviour.words])
