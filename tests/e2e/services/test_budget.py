"""A budget holds for two runner processes on one PostgreSQL database."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.e2e.experiments import submitted
from tests.e2e.service_processes import all_ready, started

pytestmark = [pytest.mark.connected, pytest.mark.long]

DOLLAR = 1_000_000_000
CONFIG = """
models:
  - {{id: reference/lecturer, options: {{latency_ms: 50}}, price: {price}}}
  - {{id: reference/hedger, options: {{latency_ms: 50}}, price: {price}}}
repeats: 30
budget: {budget}
"""
PRICE = "{input_per_million: 1, output_per_million: 10}"


async def test_a_dollar_stops_two_runners_and_more_money_lets_them_go_on(
    services_terminal, addresses, store
):
    terminal = services_terminal

    async def submitted_with(budget: str) -> str:
        return await submitted(terminal, CONFIG.format(price=PRICE, budget=budget))

    async def watched(experiment_id: str) -> tuple[int, str]:
        done = await asyncio.to_thread(terminal.run, "watch", experiment_id)
        return done.returncode, done.stderr

    async with (
        all_ready(addresses, "runner", "judge", "curator") as services,
        started("runner", addresses) as other,
    ):
        await other.ready()
        experiment_id = await submitted_with("1.00")
        code, told = await watched(experiment_id)
        assert (code, "budget" in told) == (1, True), told
        status = json.loads(
            (await asyncio.to_thread(terminal.run, "status", experiment_id, "--json")).stdout
        )
        assert 0.98 < status["spending"]["paid_usd"] <= 1.00
        assert 0 < status["done"] < status["planned"]
        assert status["failed"] == 0
        handled = [
            await runner.metric(
                "socratic_messages_total", queue="runner-run-requested", outcome="handled"
            )
            for runner in (services["runner"], other)
        ]
        assert min(handled) > 0, "one of the runners did nothing"

        assert await submitted_with("100") == experiment_id
        assert (await watched(experiment_id))[0] == 0

    calls = await store.calls(experiment_id)
    assert calls.calls == calls.turns == status["planned"]
