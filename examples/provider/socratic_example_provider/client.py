"""The client of the provider `echo`, which the runner imports at its first use."""

from __future__ import annotations

from typing import Final

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.response import Usage
from socratic_bench.ports.models import ModelClient, Question, Reply
from socratic_bench.providers.options import read_options
from socratic_bench.scoring.exchange import Status
from socratic_example_provider.spec import EchoOptions
from socratic_runner.models.access import Access

MODEL_VERSION: Final = "echo-1"


class EchoClient:
    """Asks the student's last words back. A client that calls a service awaits it in `ask`."""

    concurrency: int | None = None
    answers_at_once = True

    def __init__(self, words: int) -> None:
        self._words = words

    async def ask(self, question: Question) -> Reply:
        last_words = " ".join(question.student_message.split()[-self._words :])
        text = f"You say: {last_words.rstrip('.?!')}?"
        return Reply(
            text=text,
            status=Status.OK,
            usage=Usage(
                visible_output_tokens=len(text.split()),
                input_tokens=sum(len(each.split()) for each in question.texts),
            ),
            latency_ms=0,
            stop_reason="stop",
            model_version=MODEL_VERSION,
        )

    async def close(self) -> None:
        """Do nothing."""


def check_access(model: TutorModel, access: Access) -> None:
    """Do nothing: an echo needs no key and no library."""


def open_client(model: TutorModel, access: Access) -> ModelClient:
    """Return a client for `model`, whose options the spec has checked."""
    return EchoClient(read_options(model, EchoOptions).words)
