"""Bedrock in the suite of model clients: MiniStack, answered by a real model."""

from __future__ import annotations

from pathlib import Path

from socratic_bench.domain.experiment.manifest import Parameters, TutorModel
from socratic_bench.ports.models import ModelClient, Question
from socratic_bench.providers.base_urls import origin
from socratic_bench.providers.endpoints import Endpoint, Endpoints
from socratic_runner.models.registry import open_client
from tests.contract.models.adapters import ModelAdapter
from tests.servers.providers import ministack

_REPEATABLE = Parameters(max_tokens=12, temperature=0)
"""Bedrock takes no seed."""


class BedrockAdapter(ModelAdapter):
    """A model on Bedrock."""

    def open(self, folder: Path) -> ModelClient:
        model = self.model.model_copy(update={"base_url": ministack.SERVER.address()})
        listed = Endpoint("ministack", origin(ministack.SERVER.address()), aws=True)
        return open_client(model, base_folder=folder, endpoints=Endpoints((listed,)))

    def questions(self, *, turn: int = 1) -> list[Question]:
        asked = super().questions(turn=turn)
        return [question._replace(parameters=_REPEATABLE) for question in asked]


BEDROCK = [
    BedrockAdapter(
        "bedrock",
        TutorModel(id="bedrock/amazon.nova-lite-v1:0", options={"region": ministack.REGION}),
        environment=ministack.ROOT,
        many=2,
    )
]
"""Streamed; tests/integration/models/bedrock/ has the reply that comes whole too."""
