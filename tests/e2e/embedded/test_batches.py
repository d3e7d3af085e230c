"""A benchmark leaves its batch at the provider, and the next one takes the answers from there."""

import asyncio
import json
import signal
from datetime import UTC, datetime, timedelta

import pytest

from tests.e2e.command import Terminal
from tests.servers.providers.batches import BatchProvider
from tests.servers.providers.raw_server import serving
from tests.waiting import block_until


@pytest.mark.parametrize(("model", "path"), [("openai/gpt-x", "/v1"), ("anthropic/claude-x", "")])
async def test_an_interrupted_run_resumes_its_batch_and_pays_half_the_price(tmp_path, model, path):
    terminal = Terminal(tmp_path)
    hours = [5]
    provider = BatchProvider(
        lambda: datetime.now(UTC) + timedelta(hours=5 - hours[0]),
        ends_at=lambda now: now + timedelta(hours=1),
    )
    async with serving(provider.answer) as server:
        entry = {
            "id": model,
            "base_url": server.address + path,
            "price": {"input_per_million": 4, "output_per_million": 10},
            "options": {"batch": True},
        }
        config = {"name": "mine", "models": [entry], "repeats": 2, "budget": 1}
        written = terminal.write("b.yaml", json.dumps(config))
        with terminal.started("run", written) as running:
            await asyncio.to_thread(block_until, lambda: provider.batches, "the batch")
            running.send_signal(signal.SIGINT)
            _, err = await asyncio.to_thread(running.communicate)
        assert running.returncode == 1, err
        status = await asyncio.to_thread(terminal.run, "status", "mine")
        assert f"{model}: 30 turns wait in batch " in status.stdout
        hours[0] = 0
        again = await asyncio.to_thread(terminal.run, "run", written)
        assert again.returncode == 0, again.stderr
        status = await asyncio.to_thread(terminal.run, "status", "--json", "mine")
    found = json.loads(status.stdout)
    assert found["batches"] == []
    # 100 tokens read and 7 written, at half the price.
    assert found["spending"]["paid_usd"] == pytest.approx(30 * (100 * 2 + 7 * 5) / 1e6)
    assert [len(each.calls) for each in provider.batches] == [30]
    assert not provider.called
