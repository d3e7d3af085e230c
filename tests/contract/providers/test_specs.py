"""Each built-in provider's spec keeps the promises of a spec."""

from pathlib import Path

import pytest

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.providers.registry import provider_names, spec_of
from socratic_bench.providers.spec import ProviderSpec
from socratic_bench.testing.spec_contract import *

MODELS = {
    "bedrock": TutorModel(id="bedrock/amazon.nova-lite-v1:0", options={"region": "eu-west-1"}),
    "local": TutorModel(id="local/smollm2"),
    "reference": TutorModel(id="reference/socratic"),
    "replay": TutorModel(id="replay/recording.jsonl"),
}
"""A model of each provider that does not take any name."""


@pytest.fixture(params=provider_names())
def model(request: pytest.FixtureRequest, tmp_path: Path) -> TutorModel:
    (tmp_path / "recording.jsonl").write_text("")
    name = request.param
    return MODELS.get(name) or TutorModel(id=f"{name}/model", base_url="https://models.example/v1")


@pytest.fixture
def spec(model: TutorModel) -> ProviderSpec:
    return spec_of(model)
