"""The batches of OpenAI's API and of Anthropic's, by which a provider takes many calls at once.

A batch is found again by its name alone: the process that handed it over may be gone. OpenAI keeps
the name as metadata. Anthropic keeps none, and shows the names of calls only with their results:
until then, a batch of unknown name may be the one.
"""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic_core import to_json

from socratic_bench.domain.provider_batch import ProviderBatch
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import Question, Reply
from socratic_runner.models.http.problems import parse
from socratic_runner.models.http.reading import ReplyReading

if TYPE_CHECKING:
    from socratic_runner.models.http.client import HttpClient

SKEW: Final = timedelta(minutes=5)
"""The most that clocks of the runner and of the provider differ."""

LOST_AFTER: Final = timedelta(minutes=15)
"""A batch that its provider does not know so long after its begin was never handed over."""

METADATA: Final = "socratic_bench_batch"

_ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})
_BEYOND_QUOTA: Final = "token_limit_exceeded"


class BatchState(NamedTuple):
    """A batch as its provider has it."""

    is_ended: bool
    results: tuple[str, ...] = ()
    """The paths of its results."""

    refusal: ModelCallFailed | None = None
    """Why the provider refused the batch as a whole, after taking it."""


class HttpBatches(ABC):
    """The batches of one model's provider. All raise ModelCallFailed."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._ids: dict[str, str] = {}
        """The provider's ids of known batches, by their names."""

        self.check: Callable[[Question, Reply], Reply] = lambda _, reply: reply
        """Returns a reply of use. Raises ModelCallFailed for another one."""

    @abstractmethod
    async def submit(self, batch: ProviderBatch, calls: Mapping[str, Question]) -> None:
        """Hand a batch over, with its calls by their names."""

    @abstractmethod
    async def look(self, batch: ProviderBatch) -> BatchState | None:
        """Return the state of a batch; None: the provider has none of its name."""

    async def results(self, state: BatchState) -> Mapping[str, bytes]:
        """Return the results of an ended batch by the names of their calls."""
        found = {}
        for path in state.results:
            for line in (await self._client.exchange("GET", path)).splitlines():
                if isinstance(result := parse(line), dict):
                    found[str(result.get("custom_id"))] = line
        return found

    def reply(self, question: Question, result: bytes) -> Reply:
        """Return the reply in a result. Raises ModelCallFailed, also for a call without one."""
        reply = self._client.read(lambda reading: self._take(json.loads(result), reading))
        return self.check(question, reply)

    @abstractmethod
    def _take(self, result: Any, reading: ReplyReading) -> None: ...

    async def _json(self, method: str, path: str, data: Any = None) -> dict[str, Any]:
        body = None if data is None else to_json(data)
        answer = parse(raw := await self._client.exchange(method, path, body))
        if isinstance(answer, dict):
            return answer
        raise _unreadable(raw)

    async def _listed(self, path: str, cursor: str, begun_at: datetime) -> AsyncIterator[Any]:
        """Yield the provider's batches, newest first, down to the begin of one."""
        last = ""
        while True:
            page = await self._json("GET", f"{path}?limit=100{last}")
            for each in page.get("data") or ():
                if _created_at(each) < begun_at - SKEW:
                    return
                yield each
                last = f"&{cursor}={each['id']}"
            if not (page.get("has_more") and page.get("data")):
                return


class OpenAIBatches(HttpBatches):
    """Batches of OpenAI's API, which takes them as files."""

    async def submit(self, batch: ProviderBatch, calls: Mapping[str, Question]) -> None:
        """Upload the calls, and make a batch of them."""
        url = "/v1/chat/completions"
        lines = (
            to_json({"custom_id": name, "method": "POST", "url": url, "body": body})
            for name, body in ((name, self._client.body(call)) for name, call in calls.items())
        )
        data, content_type = _form(f"{batch.name}.jsonl", b"\n".join(lines))
        file = parse(await self._client.exchange("POST", "/files", data, content_type))
        made = await self._json(
            "POST",
            "/batches",
            {
                "input_file_id": file.get("id") if isinstance(file, dict) else None,
                "endpoint": url,
                "completion_window": "24h",
                "metadata": {METADATA: batch.name},
            },
        )
        self._ids[batch.name] = str(made["id"])

    async def look(self, batch: ProviderBatch) -> BatchState | None:
        """Ask for the batch by its id, or find it by its name."""
        if id_ := self._ids.get(batch.name):
            return self._state(await self._json("GET", f"/batches/{id_}"))
        async for each in self._listed("/batches", "after", batch.begun_at):
            if (each.get("metadata") or {}).get(METADATA) == batch.name:
                self._ids[batch.name] = str(each["id"])
                return self._state(each)
        return None

    def _state(self, found: dict[str, Any]) -> BatchState:
        files = (found.get("output_file_id"), found.get("error_file_id"))
        paths = tuple(f"/files/{each}/content" for each in files if each)
        refusal = None
        if found.get("status") == "failed" and not paths:
            errors = (found.get("errors") or {}).get("data") or [{}]
            refusal = self._client.failure({"error": errors[0]})
            if errors[0].get("code") == _BEYOND_QUOTA:
                refusal = ModelCallFailed(FailureKind.RATE_LIMITED, str(refusal), retryable=True)
        return BatchState(found.get("status") in _ENDED, paths, refusal)

    def _take(self, result: Any, reading: ReplyReading) -> None:
        response, error = result.get("response"), result.get("error")
        if not response:
            raise _unanswered(reading, str((error or {}).get("code", "no response")))
        body, status = to_json(response.get("body")), response.get("status_code")
        if status != 200:
            raise reading.failures.answered(int(status or 500), {}, body)
        reading.take_whole(body)


class AnthropicBatches(HttpBatches):
    """Message Batches of Anthropic's API."""

    _PATH: Final = "/v1/messages/batches"

    async def submit(self, batch: ProviderBatch, calls: Mapping[str, Question]) -> None:
        """Make a batch of the calls."""
        requests = [
            {"custom_id": name, "params": self._client.body(call)} for name, call in calls.items()
        ]
        made = await self._json("POST", self._PATH, {"requests": requests})
        self._ids[batch.name] = str(made["id"])

    async def look(self, batch: ProviderBatch) -> BatchState | None:
        """Ask for the batch by its id, or find it by the names in its results."""
        if id_ := self._ids.get(batch.name):
            return self._state(await self._json("GET", f"{self._PATH}/{id_}"))
        may_be_running = False
        async for each in self._listed(self._PATH, "after_id", batch.begun_at):
            if each["id"] in self._ids.values() or (
                _created_at(each) > batch.begun_at + LOST_AFTER + SKEW
            ):
                continue
            if not (state := self._state(each)).is_ended:
                may_be_running = True
                continue
            names = iter(await self.results(state))
            self._ids[next(names, "").rpartition("-")[0] or each["id"]] = str(each["id"])
            if batch.name in self._ids:
                return state
        return BatchState(is_ended=False) if may_be_running else None

    def _state(self, found: dict[str, Any]) -> BatchState:
        is_ended = found.get("processing_status") == "ended"
        # D-075: the results' own address, which the server names, would get the key.
        return BatchState(is_ended, (f"{self._PATH}/{found['id']}/results",) if is_ended else ())

    def _take(self, result: Any, reading: ReplyReading) -> None:
        outcome = result.get("result") or {}
        if outcome.get("type") == "succeeded":
            reading.take_whole(to_json(outcome.get("message")))
        elif outcome.get("type") == "errored":
            raise reading.failures.reported(outcome.get("error"))
        else:
            raise _unanswered(reading, str(outcome.get("type")))


def _unanswered(reading: ReplyReading, why: str) -> ModelCallFailed:
    message = f"did not answer a call within its batch: {why}"
    return reading.failures.failure(FailureKind.OVERLOADED, message)


def _unreadable(raw: bytes) -> ModelCallFailed:
    message = f"an answer about a batch cannot be read; it has {len(raw)} bytes"
    return ModelCallFailed(FailureKind.MALFORMED_REPLY, message, retryable=True)


def _created_at(found: dict[str, Any]) -> datetime:
    """Return when a provider made a batch: Unix seconds at OpenAI, a text at Anthropic."""
    created = found.get("created_at")
    if isinstance(created, str):
        return datetime.fromisoformat(created)
    return datetime.fromtimestamp(created or 0, UTC)


def _form(name: str, content: bytes) -> tuple[bytes, str]:
    """Return a form with the file of a batch, and its content type."""
    boundary = secrets.token_hex(16)
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    data = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
    return data, f"multipart/form-data; boundary={boundary}"
