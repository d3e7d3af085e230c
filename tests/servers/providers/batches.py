"""A provider of batches, in OpenAI's format and in Anthropic's, whose time a test decides.

It counts what it bills. `exchange` replaces that of a runner's client, and `answer` serves it over
HTTP.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from socratic_bench.errors import FailureKind, ModelCallFailed
from tests.servers.providers.raw_server import Request, completion, response

TEXT = "What have you tried so far?"
READ, WRITTEN = 100, 7

Fate = Callable[[str], str]
"""Returns what becomes of a call, by its name: `succeeded`, `errored`, `expired` or `canceled`."""


def key_of(body: dict[str, Any]) -> str:
    """What a call asks: equal keys are one question."""
    return json.dumps([body.get("seed"), body["messages"]])


@dataclass
class Batch:
    id: str
    calls: dict[str, dict[str, Any]]
    made_at: datetime
    ends_at: datetime
    metadata: dict[str, str]
    failed: str | None = None
    """The code of the error with which it failed as a whole."""


@dataclass
class BatchProvider:
    """The batches that it took, and what it billed."""

    now: Callable[[], datetime]
    ends_at: Callable[[datetime], datetime] = lambda now: now
    """Returns when a batch ends that is made at a time."""

    fate: Fate = lambda _: "succeeded"
    fails: Callable[[], str | None] = lambda: None
    """Returns the code with which the next batch fails as a whole, if it does."""

    refuses: bool = False
    """Whether it has no batches."""

    batches: list[Batch] = field(default_factory=list)
    in_batch: Counter[str] = field(default_factory=Counter)
    """How often it billed each question in a batch."""

    called: Counter[str] = field(default_factory=Counter)
    """The same for single calls."""

    _files: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    async def exchange(
        self, method: str, path: str, data: bytes | None = None, content_type: str = ""
    ) -> bytes:
        """Answer a request about files or batches."""
        if self.refuses:
            raise ModelCallFailed(FailureKind.NOT_FOUND, "has no batches", retryable=False)
        path, _, query = path.partition("?")
        parts = path.removeprefix("/v1/messages").strip("/").split("/")
        hosted = "anthropic" if path.startswith("/v1/messages") else "openai"
        if method == "POST" and parts == ["files"]:
            content = (data or b"").split(b"jsonl\r\n\r\n")[1].rpartition(b"\r\n--")[0]
            name = f"file-{len(self._files)}"
            self._files[name] = [json.loads(line) for line in content.splitlines()]
            return json.dumps({"id": name}).encode()
        if method == "POST":
            return self._shown(self._made(json.loads(data or b""), hosted), hosted)
        if parts[0] == "files":
            return self._results(self._batch(parts[1]), hosted)
        if parts[-1] == "results":
            return self._results(self._batch(parts[1]), hosted)
        if len(parts) == 2:
            return self._shown(self._batch(parts[1]), hosted)
        return self._list(query, hosted)

    def _made(self, body: dict[str, Any], hosted: str) -> Batch:
        if hosted == "openai":
            assert body["completion_window"] == "24h"
            lines = self._files[body["input_file_id"]]
            calls = {each["custom_id"]: each["body"] for each in lines}
        else:
            calls = {each["custom_id"]: each["params"] for each in body["requests"]}
        assert all("stream" not in each for each in calls.values())
        now, failed = self.now(), self.fails() if hosted == "openai" else None
        ends_at = now if failed else self.ends_at(now)
        id_ = f"batch_{len(self.batches)}"
        batch = Batch(id_, calls, now, ends_at, body.get("metadata", {}), failed)
        self.batches.append(batch)
        if failed is None:
            for name, call in calls.items():
                self.in_batch[key_of(call)] += self.fate(name) == "succeeded"
        return batch

    def _batch(self, id_: str) -> Batch:
        return next(each for each in self.batches if each.id == id_)

    def _list(self, query: str, hosted: str) -> bytes:
        newest, page = self.batches[::-1], 2
        after = query.partition("&")[2].partition("=")[2]
        start = next((n + 1 for n, each in enumerate(newest) if each.id == after), 0)
        data = [json.loads(self._shown(each, hosted)) for each in newest[start : start + page]]
        return json.dumps({"data": data, "has_more": start + page < len(newest)}).encode()

    def _shown(self, batch: Batch, hosted: str) -> bytes:
        is_ended = batch.ends_at <= self.now()
        if hosted == "anthropic":
            status = "ended" if is_ended else "in_progress"
            known = {"created_at": batch.made_at.isoformat(), "processing_status": status}
            return json.dumps({"id": batch.id, **known}).encode()
        status = ("failed" if batch.failed else "completed") if is_ended else "in_progress"
        files: dict[str, Any] = {"output_file_id": batch.id} if status == "completed" else {}
        errors = {"errors": {"data": [{"code": batch.failed, "message": "no"}]}}
        shown: dict[str, Any] = {
            "created_at": int(batch.made_at.timestamp()),
            "metadata": batch.metadata,
        }
        told = errors if batch.failed else files
        return json.dumps({"id": batch.id, "status": status, **shown, **told}).encode()

    def _results(self, batch: Batch, hosted: str) -> bytes:
        results = _anthropic_result if hosted == "anthropic" else _openai_result
        lines = ({"custom_id": name, **results(self.fate(name))} for name in batch.calls)
        return b"\n".join(json.dumps(line).encode() for line in lines)

    async def answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Answer over HTTP, single calls of OpenAI's format too."""
        method, target, _ = request.line.split()
        path = target.removeprefix("/v1") if "/v1/messages" not in target else target
        if path.startswith("/chat"):
            self.called[key_of(json.loads(request.body))] += 1
            body = completion(TEXT, usage={"prompt_tokens": READ, "completion_tokens": WRITTEN})
            writer.write(response("200 OK", body, "Content-Type: application/json"))
            return
        try:
            body = await self.exchange(method, path, request.body)
        except ModelCallFailed:
            writer.write(response("404 Not Found", b'{"error": {"message": "no such route"}}'))
            return
        writer.write(response("200 OK", body, "Content-Type: application/json"))


def _openai_result(fate: str) -> dict[str, Any]:
    if fate == "expired":
        return {"response": None, "error": {"code": "batch_expired", "message": "too late"}}
    if fate != "succeeded":
        body = {"error": {"message": "it broke", "type": "server_error"}}
        return {"response": {"status_code": 500, "body": body}, "error": None}
    usage = {"prompt_tokens": READ, "completion_tokens": WRITTEN}
    body = json.loads(completion(TEXT, usage=usage))
    return {"response": {"status_code": 200, "body": body}, "error": None}


def _anthropic_result(fate: str) -> dict[str, Any]:
    if fate == "succeeded":
        message = {
            "type": "message",
            "content": [{"type": "text", "text": TEXT}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": READ, "output_tokens": WRITTEN},
        }
        return {"result": {"type": "succeeded", "message": message}}
    error = {"type": "error", "error": {"type": "api_error", "message": "it broke"}}
    return {"result": {"type": fate, **({"error": error} if fate == "errored" else {})}}
