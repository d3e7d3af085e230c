"""One benchmark through every wire format, against a real language model behind a foreign server.

Every format serves the same weights. At temperature 0 they give the same answers with the same
token counts, so only the transport differs.
"""

import asyncio
import json

import pytest

from tests.e2e.command import Terminal
from tests.e2e.embedded.test_killed import rows
from tests.servers.providers import llama_http, ministack
from tests.servers.providers.listed import listed

OVER_HTTP = """
models:
  - {{id: llamacpp/streamed, base_url: "{address}/v1"}}
  - {{id: openai-compatible/whole, base_url: "{address}/v1", options: {{stream: false}}}}
  - {{id: anthropic/streamed, base_url: "{address}"}}
  - {{id: anthropic/whole, base_url: "{address}", options: {{stream: false}}}}
"""
BEDROCK = """
models:
  - {{id: bedrock/streamed, base_url: "{address}", options: {{region: {region}}}}}
  - {{id: bedrock/whole, base_url: "{address}", options: {{region: {region}, stream: false}}}}
"""
QUESTIONS = """
scenarios:
  - id: fractions
    dimension: student
    prompt: Which is bigger, 3/4 or 2/3?
    follow_ups: [How could I draw it?]
system_prompt: You are a tutor. Ask one short question.
parameters: {max_tokens: 12, temperature: 0}
repeats: 1
"""


@pytest.mark.connected
@pytest.mark.long
@pytest.mark.xdist_group("a real model")
async def test_every_wire_format_carries_the_same_answers_of_a_real_model(terminal: Terminal):
    llama = await asyncio.to_thread(llama_http.SERVER.address)
    aws = await asyncio.to_thread(ministack.SERVER.address)
    environment = {**ministack.ROOT, **listed(aws, aws=True), "no_proxy": "127.0.0.1"}
    terminal = Terminal(terminal.folder, environment)
    # One after the other: who waits for the model for too long, MiniStack answers by itself.
    for models, address, runs in ((OVER_HTTP, llama, 4), (BEDROCK, aws, 2)):
        text = models.format(address=address, region=ministack.REGION)
        config = terminal.write("b.yaml", text + QUESTIONS)
        done = await asyncio.to_thread(terminal.run, "run", config, "--json")
        result = json.loads(done.stdout)
        assert (result["done"], result["failed"]) == (runs, 0), done.stderr
        assert result["model_calls"] == 2 * runs

    responses = [json.loads(record) for (record,) in rows(terminal, "SELECT record FROM responses")]
    for turn in (1, 2):
        of_turn = [response for response in responses if response["turn"] == turn]
        assert len(of_turn) == 6
        assert len({response["text"] for response in of_turn}) == 1
        assert len({json.dumps(response["usage"]) for response in of_turn}) == 1
    for response in responses:
        streamed = response["run"]["model_id"].endswith("streamed")
        assert (response["first_token_ms"] is not None) == streamed
        assert response["text"].strip()
        assert ministack.MADE_UP not in response["text"]
        assert response["status"] in {"ok", "truncated"}
        assert 0 < response["usage"]["visible_output_tokens"] <= 12
        assert response["usage"]["input_tokens"] > 20
        assert response["attempts"] == 1
        assert response["stop_reason"]
    assert terminal.run("verify").returncode == 0
