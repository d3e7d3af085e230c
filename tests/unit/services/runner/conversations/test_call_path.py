"""The way of a call can be read: few of our frames lie between the worker and the client."""

import asyncio
import traceback
from pathlib import Path

from socratic_bench.adapters.sql.store import SqlStore
from tests.unit.services.runner.scripted import EXPERIMENT, ONE, ScriptedClient, carry_out, reply

MOST_FRAMES = 9
"""Ten with the handler's own: what an asynchronous generator awaits cannot be seen from outside."""


async def test_at_most_ten_frames_lie_between_the_worker_and_the_client(tmp_path):
    seen = []

    async def script():
        seen.append(traceback.extract_stack())
        seen.extend(_handlers())
        return reply()

    store = SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")
    await store.prepare()
    await store.register(EXPERIMENT)
    await carry_out(store, ScriptedClient(lambda *_: script()), ONE)
    await store.close()
    frames = [
        f"{Path(frame.filename).stem}.{frame.name}"
        for stack in seen
        for frame in stack
        if "/socratic_" in frame.filename
    ]
    between = [frame for frame in frames if frame not in {"worker.run", "worker._tell_groups"}]
    assert "handler._carry_out" in between
    assert "dispatch.dispatch" in between
    assert len(between) <= MOST_FRAMES, between


def _handlers():
    """The stacks of the tasks that wait for the outcome of the run."""
    for task in asyncio.all_tasks():
        stack = _frames_of(task.get_coro())
        if any(frame.name == "dispatch" for frame in stack):
            yield stack


def _frames_of(awaited):
    """The frames that a task awaits, outermost first."""
    frames = []
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "ag_frame", None)
        if frame is not None:
            frames.append(traceback.FrameSummary(frame.f_code.co_filename, 0, frame.f_code.co_name))
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "ag_await", None)
    return frames
