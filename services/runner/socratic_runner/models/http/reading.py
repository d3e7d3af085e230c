"""A reply while it is read: piece by piece, or whole."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError

from socratic_bench.domain.response import Usage
from socratic_bench.errors import ModelCallFailed
from socratic_bench.ports.models import FailureKind, Reply
from socratic_bench.scoring.score import MOST_TOKENS
from socratic_bench.scoring.statuses import Status
from socratic_runner.models.http.failures import Failures
from socratic_runner.models.http.server_sent_events import Event

_LONGEST_NAME: Final = 200
"""Characters of a stop reason or a model's version that are kept."""


_MOST: Final = MOST_TOKENS // 4
"""Of one count: so that the sum of those that belong together is none too large either."""


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= _MOST else None


Count = Annotated[int | None, BeforeValidator(_count)]
"""A number of tokens; what cannot be one is no count, and spoils no reply."""

Shape = TypeVar("Shape", bound=BaseModel)


class Reading(ABC):
    """One reply. Its provider's wire format is a subclass."""

    statuses: ClassVar[Mapping[str, Status]]
    """What a stop reason says of the reply, where it is not OK."""

    def __init__(self, failures: Failures, *, streamed: bool) -> None:
        self.streamed = streamed
        """Whether it was asked for piece by piece."""

        self.complete = False
        """Whether nothing more is to come that anybody needs."""

        self.failures = failures
        self._texts: list[str] = []
        self._reasoned = False
        """Whether the model reasoned where one can see it."""

        self._stop_reason: str | None = None
        self._model: str | None = None
        self._started = self._last = time.perf_counter()
        self._first_token: float | None = None

    @abstractmethod
    def take_event(self, event: Event) -> None:
        """Take the next event of a stream. Raises ModelCallFailed if it holds an error."""

    @abstractmethod
    def take_whole(self, body: bytes) -> None:
        """Take a reply that came in one piece. Raises ModelCallFailed if it holds an error."""

    @abstractmethod
    def _usage(self) -> Usage: ...

    @property
    def finished(self) -> bool:
        """Whether the model said that it stopped, and why."""
        return self._stop_reason is not None

    @property
    def wrote(self) -> bool:
        """Whether there is any text."""
        return bool(self._texts)

    def _status(self) -> Status:
        return self.statuses.get(self._stop_reason or "", Status.OK)

    def reply(self) -> Reply:
        """The reply. Raises ModelCallFailed if it ended without saying that it was finished."""
        if self._stop_reason is None:
            raise self.cut("the reply ended without saying that it was finished")
        return Reply(
            text="".join(self._texts),
            status=self._status(),
            usage=self._usage(),
            latency_ms=round((self._last - self._started) * 1000),
            stop_reason=self.failures.one_line(self._stop_reason, _LONGEST_NAME),
            model_version=self.failures.one_line(self._model or "", _LONGEST_NAME) or None,
            first_token_ms=(
                None
                if self._first_token is None
                else round((self._first_token - self._started) * 1000)
            ),
        )

    def cut(self, why: str) -> ModelCallFailed:
        """The failure of a reply that is not whole."""
        return self.failures.failure(FailureKind.CUT_STREAM, f"cut its reply short: {why}")

    def _read(self, shape: type[Shape], data: bytes) -> Shape:
        """Data as what it should be. Raises ModelCallFailed with MALFORMED_REPLY if it is not."""
        self._last = time.perf_counter()
        try:
            return shape.model_validate_json(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(str(step) for step in first["loc"]) or "the reply"
            message = f"sent a reply that cannot be read: {place}: {first['msg']}"
            raise self.failures.failure(FailureKind.MALFORMED_REPLY, message) from None

    def _write(self, text: str) -> None:
        """Take a piece of the tutor's text."""
        if text:
            self._texts.append(text)
            self._begin()

    def _reason(self) -> None:
        """Take a piece of reasoning, which is no text of the tutor."""
        self._reasoned = True
        self._begin()

    def _begin(self) -> None:
        if self.streamed and self._first_token is None:
            self._first_token = self._last
