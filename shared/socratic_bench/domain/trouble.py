"""The trouble of a model: its failing calls, shown before a run has failed."""

from __future__ import annotations

from math import ceil
from typing import Final

from pydantic import BaseModel, ConfigDict

REASON_LENGTH: Final = 500
"""The most characters of a stored reason; a provider's message may have any length."""


NO_TEXT: Final = "no_text"
"""The kind of a model whose answers have no text."""

NO_BATCH: Final = "no_batch"
"""The kind of a model whose provider refused a batch."""


class Trouble(BaseModel):
    """The latest failed call to a model of an experiment that has not answered since."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    model_id: str
    kind: str
    """The class of the failure."""

    reason: str
    """The provider's message, on one line."""

    attempt: int
    """The number of the attempt that failed, of the run that failed last."""

    attempts: int
    """The attempts that a failure of this class allows."""

    next_in_seconds: float | None
    """The time of that run's next attempt; null: it was the last one."""

    @property
    def sentence(self) -> str:
        """Say all of it in one sentence. The model's name and the reason are data."""
        return f"{about(self.model_id, self.reason)} ({self.tries})"

    @property
    def tries(self) -> str:
        """Say which attempt failed, and when the next one comes."""
        if self.kind == NO_TEXT:
            return "such answers have no score"
        if self.kind == NO_BATCH:
            return "it takes no batches: its calls are made one by one, at full price"
        if not self.attempt:
            return "not called"
        if self.next_in_seconds is None:
            return f"given up after {_count(self.attempt, 'attempt')}"
        seconds = max(1, ceil(self.next_in_seconds))
        return f"attempt {self.attempt} of {self.attempts}, next in {seconds} s"


def about(model_id: str, reason: str) -> str:
    """Return a client's message behind the model's name, with the provider named once."""
    provider = f"{model_id.partition('/')[0]} "
    if reason.startswith(f"{provider}at "):
        return f"{model_id} {reason.removeprefix(provider)}"
    return f"{model_id}: {reason}"


def one_line(reason: str) -> str:
    """Return a reason on one line, without control characters, of at most REASON_LENGTH."""
    visible = "".join(each if each.isprintable() else " " for each in reason)
    line = " ".join(visible.split())
    return line if len(line) <= REASON_LENGTH else f"{line[: REASON_LENGTH - 1]}…"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
