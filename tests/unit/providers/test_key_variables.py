"""The environment variable that a configuration may name for a key, and no plan holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from socratic_bench.errors import InvalidConfig
from socratic_bench.planning.config_file.config import BenchmarkConfig, parse_config
from socratic_bench.planning.model_catalogue import RegisteredModels


def config_of(**model: object) -> BenchmarkConfig:
    text = json.dumps({"models": [{"id": "openai/m", **model}]})
    return parse_config(text, name="b.json", base_folder=Path(), catalogue=RegisteredModels())


def test_it_is_told_beside_the_plan_and_is_no_part_of_it():
    named = config_of(options={"api_key_env": "OUR_KEY", "stream": False})
    plain = config_of(options={"stream": False})
    assert named.key_variables == {"openai/m": "OUR_KEY"}
    assert named.manifest == plain.manifest
    assert "OUR_KEY" not in named.manifest.model_dump_json()


@pytest.mark.parametrize(
    "value",
    [
        "sk-proj-Abc",
        "lower_case",
        "",
        "1KEY",
        "A-B",
        7,
        "AWS_SECRET_ACCESS_KEY",
        "SOCRATIC_STORE_URL",
    ],
)
def test_what_cannot_be_one_is_refused_and_not_shown(value):
    with pytest.raises(InvalidConfig, match="option api_key_env: must be the name") as refused:
        config_of(options={"api_key_env": value})
    assert not value or str(value) not in str(refused.value)


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ({"id": "reference/socratic"}, "reference models take no key"),
        ({"id": "bedrock/x"}, "bedrock models take no key"),
        ({"endpoint": "ours"}, "endpoint already names its key"),
    ],
)
def test_where_no_key_is_sent_or_it_is_named_already_it_is_refused(model, problem):
    with pytest.raises(InvalidConfig, match=problem):
        config_of(**model, options={"api_key_env": "OUR_KEY"})


@pytest.mark.parametrize("provider", ["reference/socratic", "local/smollm2"])
def test_a_model_in_this_process_has_no_endpoint(provider):
    with pytest.raises(InvalidConfig, match="use no network; remove its endpoint"):
        config_of(id=provider, endpoint="ours")


def test_the_name_of_an_endpoint_is_part_of_what_names_the_plan():
    ours, theirs, none = (
        config_of(**named).manifest.manifest_id
        for named in ({"endpoint": "ours"}, {"endpoint": "theirs"}, {})
    )
    assert len({ours, theirs, none}) == 3
