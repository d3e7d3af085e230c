"""Only the use of a provider loads its library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARIES = ("aiobotocore", "aiohttp", "anthropic", "botocore", "openai", "xllamacpp")
OURS = "socratic_runner.models."
PROVIDERS = (
    "anthropic",
    "aws.bedrock",
    "local.smollm2",
    "openai.chat_completions",
    "reference",
    "replay",
)
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI",
    "AWS_REGION": "us-east-1",
    "OPENAI_API_KEY": "a-key",
    "ANTHROPIC_API_KEY": "another-key",
}

OPENING = """
import asyncio, json, sys
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.providers.registry import check_model
from socratic_runner.models.registry import open_client

from socratic_bench.providers.endpoints import ANYWHERE

async def main():
    for model_id in sys.argv[1:]:
        check_model(TutorModel(id=model_id))
        client = open_client(TutorModel(id=model_id), endpoints=ANYWHERE)
        await client.close()

asyncio.run(main())
print(json.dumps(list(sys.modules)))
"""
ASKING = """
import asyncio, json, sys
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import ModelCallFailed
from socratic_bench.providers.endpoints import ANYWHERE
from socratic_runner.models.registry import open_client
from socratic_bench.testing.samples import a_question

async def main():
    model = TutorModel(id=sys.argv[1], base_url="http://127.0.0.1:9")
    endpoints = ANYWHERE.allowing([("aws", "http://127.0.0.1:9")])
    client = open_client(model, endpoints=endpoints)
    try:
        await client.ask(a_question())
    except ModelCallFailed:
        pass
    await client.close()

asyncio.run(main())
print(json.dumps(list(sys.modules)))
"""
MISSING = """
import sys

for library in sys.argv[2:]:
    sys.modules[library] = None  # as if it were not installed

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import MissingExtra
from socratic_bench.providers.endpoints import ANYWHERE
from socratic_bench.providers.registry import check_model
from socratic_runner.models.registry import check_access, open_client

model = TutorModel(id=sys.argv[1])
check_model(model)
for attempt in (check_access, open_client):
    try:
        attempt(model, endpoints=ANYWHERE)
    except MissingExtra as error:
        print(error)
"""


def run(script: str, *arguments: str) -> str:
    """The output of a fresh interpreter."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        env={**inherited, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded(script: str, *arguments: str) -> tuple[set[str], set[str]]:
    """The libraries and the providers of ours that a fresh interpreter has loaded."""
    modules = set(json.loads(run(script, *arguments)))
    ours = {provider for provider in PROVIDERS if OURS + provider in modules}
    return modules & set(LIBRARIES), ours


@pytest.mark.parametrize(
    ("model_id", "provider"),
    [
        ("bedrock/amazon.nova-lite-v1:0", "aws.bedrock"),
        ("openai/gpt-5", "openai.chat_completions"),
        ("ollama/llama3", "openai.chat_completions"),
        ("anthropic/claude-sonnet-5", "anthropic"),
        ("reference/socratic", "reference"),
    ],
)
def test_opening_a_model_loads_its_provider_and_no_other(model_id: str, provider: str):
    libraries, ours = loaded(OPENING, model_id)
    assert ours == {provider}
    assert not libraries - {"aiohttp"}
    assert provider != "reference" or not libraries


@pytest.mark.parametrize(
    ("model_id", "needed"),
    [
        ("bedrock/amazon.nova-lite-v1:0", {"aiobotocore", "aiohttp", "botocore"}),
        ("ollama/llama3", {"aiohttp"}),
        ("anthropic/claude-sonnet-5", {"aiohttp"}),
    ],
)
def test_asking_a_model_loads_the_library_of_its_provider_and_no_other(
    model_id: str, needed: set[str]
):
    libraries, ours = loaded(ASKING, model_id)
    assert libraries <= needed
    assert len(ours) == 1


@pytest.mark.parametrize(
    "module",
    [
        "socratic_runner.entrypoints.container",
        "socratic_runner.models.registry",
        "socratic_cli.cli",
    ],
)
def test_starting_loads_no_providers_library(module: str):
    script = f"import json, sys, {module}\nprint(json.dumps(list(sys.modules)))"
    libraries, ours = loaded(script)
    assert not libraries
    assert not ours - {"local.smollm2"}


@pytest.mark.parametrize(
    ("model_id", "missing", "extra"),
    [
        ("bedrock/amazon.nova-lite-v1:0", ("aiobotocore", "botocore"), "bench[bedrock]"),
        ("openai/gpt-5", ("aiohttp",), "bench-runner[http]"),
        ("anthropic/claude-sonnet-5", ("aiohttp",), "bench-runner[http]"),
    ],
)
def test_a_missing_library_is_told_of_with_how_to_get_it(
    model_id: str, missing: Sequence[str], extra: str
):
    told = run(MISSING, model_id, *missing).splitlines()
    assert len(told) == 2
    for line in told:
        assert line.startswith(f"model {model_id}: ")
        assert missing[0] in line
        assert f"pip install 'socratic-ai-{extra}'" in line
