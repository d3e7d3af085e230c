"""Services as processes on SQS, with the announcements of `watch` over SNS."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from socratic_bench.addresses import open_broker
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.ports.stores.leases import CallCount
from socratic_bench.ports.stores.store import Store
from tests.e2e.command import Terminal
from tests.e2e.experiments import completed, dead_letters, submitted
from tests.e2e.service_processes import all_ready, start
from tests.servers import aws_emulator, postgresql, sqs
from tests.waiting import until

pytestmark = [pytest.mark.connected, pytest.mark.long]

KINDS = ("runner", "judge", "curator", "api")
TUTORS = ("socratic", "lecturer", "hedger")
REPEATS = 3


@pytest.fixture
async def addresses() -> AsyncIterator[dict[str, str]]:
    async with sqs.namespace() as broker, postgresql.prepared_database() as store:
        yield {
            "SOCRATIC_BROKER_URL": broker,
            "SOCRATIC_STORE_URL": store,
            **aws_emulator.credentials(),
        }


@pytest.fixture
def services_terminal(tmp_path: Path, addresses: dict[str, str]) -> Terminal:
    return Terminal(tmp_path, addresses)


def models(**options: object) -> str:
    listed = [{"id": f"reference/{tutor}", "options": options} for tutor in TUTORS]
    return json.dumps({"models": listed, "repeats": REPEATS})


async def more_calls(store: Store, experiment_id: str, than: int) -> CallCount:
    return await until(
        partial(store.calls, experiment_id),
        lambda count: count.calls > than,
        f"more calls than {than}",
    )


async def test_a_benchmark_is_carried_out_and_announced(
    services_terminal: Terminal,
    addresses: dict[str, str],
    store: Store,
) -> None:
    broker = open_broker(addresses["SOCRATIC_BROKER_URL"])
    await broker.declare(WORK_QUEUES, BROADCASTS)
    try:
        async with all_ready(addresses, *KINDS) as services, broker.listen(*BROADCASTS) as news:
            experiment_id = await submitted(services_terminal, models())
            await completed(store, experiment_id)
            async for message in news:
                if message.type == BROADCASTS[-1]:
                    assert message.group == experiment_id
                    break
            for service in services.values():
                service.terminate()
            codes = {kind: await service.ended() for kind, service in services.items()}
    finally:
        await broker.close()
    assert codes == dict.fromkeys(KINDS, 0)
    calls = (await store.calls(experiment_id)).calls
    assert calls == len(TUTORS) * 15 * REPEATS
    assert await dead_letters(addresses) == []


async def test_killed_services_delay_a_benchmark_and_change_nothing(
    services_terminal: Terminal, addresses: dict[str, str], store: Store
) -> None:
    async with all_ready(addresses, "judge", "curator", "runner") as services:
        experiment_id = await submitted(services_terminal, models(latency_ms=100))
        called = 0
        for kind in ("judge", "curator", "runner"):
            # Not by the runs that are done: they end with the first of the three.
            called = (await more_calls(store, experiment_id, called)).calls
            services[kind].kill()
            assert await services[kind].ended() == -signal.SIGKILL
        again = [await start(kind, addresses) for kind in ("runner", "judge", "curator")]
        try:
            await completed(store, experiment_id)
        finally:
            await asyncio.gather(*(service.close() for service in again))
    assert await dead_letters(addresses) == []
