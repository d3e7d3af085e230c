"""A model whose calls fail, as people read of it before any run has failed."""

from __future__ import annotations

from math import ceil
from typing import Final

from pydantic import BaseModel, ConfigDict

REASON_LENGTH: Final = 240
"""Characters of a reason that are kept: a provider may say any amount."""


class Trouble(BaseModel):
    """The latest failed call to a model of an experiment that was not answered since."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    model_id: str
    kind: str
    """The class of the failure."""

    reason: str
    """What the caller was told, on one line."""

    attempt: int
    """Which attempt failed, of the run that failed last."""

    attempts: int
    """How many attempts a failure of this class allows."""

    next_in_seconds: float | None
    """When the next attempt of that run comes; null: it was the last one."""

    @property
    def sentence(self) -> str:
        """All of it in one sentence. What the model is called and what was told are data."""
        return f"{about(self.model_id, self.reason)} ({self.tries})"

    @property
    def tries(self) -> str:
        """Which attempt failed, and when the next one comes."""
        if not self.attempt:
            return "not called"
        if self.next_in_seconds is None:
            return f"given up after {_count(self.attempt, 'attempt')}"
        seconds = max(1, ceil(self.next_in_seconds))
        return f"attempt {self.attempt} of {self.attempts}, next in {seconds} s"


def about(model_id: str, reason: str) -> str:
    """What a model's client told, with the name of the model before it, and its provider once."""
    provider = f"{model_id.partition('/')[0]} "
    if reason.startswith(f"{provider}at "):
        return f"{model_id} {reason.removeprefix(provider)}"
    return f"{model_id}: {reason}"


def one_line(reason: str) -> str:
    """A reason on one line, without control characters, and not too long."""
    visible = "".join(each if each.isprintable() else " " for each in reason)
    line = " ".join(visible.split())
    return line if len(line) <= REASON_LENGTH else f"{line[: REASON_LENGTH - 1]}…"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
