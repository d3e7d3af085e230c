"""The API and a runner with a stopped model and a call in flight, as Prometheus scrapes them."""

from __future__ import annotations

import json

import pytest

from tests.e2e.experiments import submitted
from tests.e2e.service_processes import all_ready
from tests.servers.providers.raw_server import response, serving
from tests.waiting import until

pytestmark = pytest.mark.connected

REFUSED, SLOW = "openai-compatible/refused", "reference/socratic"
PRICE = {"input_per_million": 1, "output_per_million": 10}
QUEUE = "runner-run-requested"


def config(address: str) -> str:
    refused = {"id": REFUSED, "base_url": f"{address}/v1", "price": PRICE}
    slow = {"id": SLOW, "options": {"latency_ms": 100_000}, "price": PRICE}
    asked = [{"id": "s", "dimension": "student", "prompt": "Is 91 a prime number?"}]
    models = [refused, slow]
    return json.dumps({"models": models, "scenarios": asked, "repeats": 1, "budget": 10})


@pytest.mark.long
async def test_stopped_models_money_old_messages_and_dead_letters_are_scraped(
    services_terminal, environment
):
    async def refuse(_request, writer):
        body = json.dumps({"error": {"message": "no such key"}}).encode()
        writer.write(response("401 Unauthorized", body, "Content-Type: application/json"))

    async with serving(refuse) as server:
        listed = {"SOCRATIC_ENDPOINTS": json.dumps({"refusing": server.address})}
        async with all_ready({**environment, **listed}, "runner", "api") as services:
            runner, api = services["runner"], services["api"]
            await submitted(services_terminal, config(server.address))
            await runner.logged("model stopped")
            assert await runner.metric("socratic_model_breakers_open", model=REFUSED) == 1
            await until(
                lambda: runner.metric("socratic_oldest_message_seconds", queue=QUEUE),
                lambda seconds: seconds > 0,
                "the age of the run in hand",
            )
            await until(
                lambda: runner.metric("socratic_dead_letters", queue=QUEUE),
                lambda letters: letters == 0,
                "the number of dead letters",
            )
            reserved = await until(
                lambda: api.metric("socratic_budget_usd", part="reserved"),
                lambda usd: usd > 0,
                "the money of the call in flight",
            )
            assert await api.metric("socratic_budget_usd", part="spent") == 0
            assert await api.metric("socratic_budget_usd", part="left") == pytest.approx(
                10 - reserved
            )
            assert await runner.metric("socratic_model_breakers_open", model=SLOW) == 0
