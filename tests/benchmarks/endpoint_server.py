"""An endpoint of OpenAI's form that answers after a given time; run as a process of its own.

    python -m tests.benchmarks.endpoint_server

It prints its address. The path says what happens: `/200/model/v1` answers after 200 ms,
`/200~60/model/v1` after 140 to 260 ms, all equally likely, `/hang/model/v1` never.
"""

from __future__ import annotations

import asyncio
import json
import random

from aiohttp import web

SCATTER = random.Random(1)
ANSWER = "What have you tried so far, and what happened then?"
USAGE = {"prompt_tokens": 60, "completion_tokens": 12, "total_tokens": 72}
WHOLE = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "fixed",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": ANSWER},
                "finish_reason": "stop",
            }
        ],
        "usage": USAGE,
    }
).encode()


def _event(contents: dict[str, object]) -> bytes:
    return b"data: " + json.dumps({"id": "chatcmpl-1", "model": "fixed", **contents}).encode()


def _delta(text: str, finish_reason: str | None = None) -> bytes:
    delta = {"content": text} if text else {}
    return _event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})


STREAM = b"\n\n".join(
    [
        *(_delta(word + " ") for word in ANSWER.split()),
        _delta("", "stop"),
        _event({"choices": [], "usage": USAGE}),
        b"data: [DONE]",
        b"",
    ]
)


async def _complete(request: web.Request) -> web.Response:
    asked = await request.json()
    latency = request.match_info["latency"]
    if latency == "hang":
        await asyncio.Event().wait()
    middle, _, spread = latency.partition("~")
    milliseconds = int(middle) + SCATTER.uniform(-1, 1) * int(spread or 0)
    await asyncio.sleep(milliseconds / 1000)
    if asked.get("stream"):
        return web.Response(body=STREAM, content_type="text/event-stream")
    return web.Response(body=WHOLE, content_type="application/json")


async def _serve() -> None:
    application = web.Application()
    application.router.add_post("/{latency}/{model}/v1/chat/completions", _complete)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    host, port = runner.addresses[0][:2]
    print(f"http://{host}:{port}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve())
