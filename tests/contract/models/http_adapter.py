"""Models over HTTP in the suite of model clients: a real one, in both wire formats."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from socratic_bench.domain.experiment.manifest import Parameters, TutorModel
from socratic_bench.ports.models import ModelClient, Question
from socratic_bench.providers.endpoints import ANYWHERE
from socratic_runner.models.registry import open_client
from tests.contract.models.adapters import ModelAdapter
from tests.servers.providers.llama_http import NAME, SERVER


@dataclass(frozen=True)
class HttpAdapter(ModelAdapter):
    """A model at a server that is started when it is first needed."""

    path: str = ""
    """Of the base URL, at that server."""

    temperature: float = 0.7

    def open(self, folder: Path) -> ModelClient:
        model = self.model.model_copy(update={"base_url": f"{SERVER.address()}{self.path}"})
        return open_client(model, base_folder=folder, endpoints=ANYWHERE)

    def questions(self, *, turn: int = 1) -> list[Question]:
        parameters = Parameters(max_tokens=12, temperature=self.temperature)
        asked = super().questions(turn=turn)
        return [question._replace(parameters=parameters) for question in asked]


def _adapter(provider: str, path: str, temperature: float, *, stream: bool) -> HttpAdapter:
    return HttpAdapter(
        provider,
        TutorModel(id=f"{provider}/{NAME}", options={"stream": stream}),
        many=2,
        path=path,
        temperature=temperature,
    )


HTTP = [
    _adapter("llamacpp", "/v1", 0.7, stream=True),
    # Anthropic's format has no seed: only without chance does an answer come again.
    _adapter("anthropic", "", 0.0, stream=False),
]
"""One is streamed and one comes whole; that each format says the same both ways is tested in
tests/integration/models/test_real_model.py."""
