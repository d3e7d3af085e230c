"""SOCRATIC_ENDPOINTS as an operator writes it, and the messages about mistakes in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from socratic_bench.errors import InvalidSettings
from socratic_bench.providers.endpoints import Endpoint, KeySource, read_endpoints

SECRET = "sk-very-secret-9"


def read(setting: object) -> tuple[Endpoint, ...]:
    text = setting if isinstance(setting, str) else json.dumps(setting)
    return read_endpoints(SecretStr(text))


def test_an_endpoint_has_an_origin_and_at_most_one_key():
    listed = read(
        {
            "ours": {"origin": "https://LLM.example.org:443/", "key_variable": "OUR_KEY"},
            "theirs": {"origin": "https://gateway.example.net:8443", "secret": SECRET},
            "aws": {"origin": "https://vpce.example", "aws": True},
            "ollama": "http://127.0.0.1:11434",
        }
    )
    assert listed == (
        Endpoint("ours", "https://llm.example.org", KeySource(variable="OUR_KEY")),
        Endpoint("theirs", "https://gateway.example.net:8443", KeySource(secret=SecretStr(SECRET))),
        Endpoint("aws", "https://vpce.example", aws=True),
        Endpoint("ollama", "http://127.0.0.1:11434"),
    )
    assert SECRET not in repr(listed)


@pytest.mark.parametrize("setting", [None, SecretStr(""), SecretStr("  ")])
def test_without_the_setting_nothing_is_listed(setting):
    assert read_endpoints(setting) == ()


def test_it_may_be_a_file(tmp_path: Path):
    file = tmp_path / "endpoints.json"
    file.write_text('{"ollama": "http://127.0.0.1:11434"}')
    assert [each.name for each in read(str(file))] == ["ollama"]


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("/no/such/file.json", "cannot read its file: No such file or directory"),
        ("{", "must be JSON"),
        ({"x": {}}, "x.origin: is missing"),
        ({"x": 7}, "x: "),
        ({"x": {"origin": "llm.example.org"}}, "x.origin: must begin with http"),
        ({"x": {"origin": "https://llm.example.org/v1"}}, "x.origin: holds a path"),
        ({"x": {"origin": f"https://{SECRET}@llm.example.org"}}, "x.origin: holds a user"),
        ({"x": {"origin": "http://169.254.169.254"}}, "x.origin: is an address of this network"),
        ({"x": {"origin": "http://[::ffff:169.254.169.254]"}}, "x.origin: is an address of this"),
        ({"x": {"origin": "http://h", "key_variable": SECRET}}, "x.key_variable: must be the name"),
        ({"x": {"origin": "http://h", "key_variable": "AWS_KEY"}}, "x.key_variable: must be the n"),
        (
            {"x": {"origin": "http://h", "key_variable": "A_KEY", "secret": SECRET}},
            "x: has more than one of key_variable, secret and aws",
        ),
        ({"x": {"origin": "http://h", "api_key": SECRET}}, "x: has an unknown field"),
        ({"x": {"origin": "http://h", "secret": 7}}, "x.secret: "),
        ({f"x {SECRET}": "http://h"}, "each name must have letters"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_that_may_be_secret_repeated(setting, problem):
    with pytest.raises(InvalidSettings, match="SOCRATIC_ENDPOINTS") as wrong:
        read(setting)
    assert problem in str(wrong.value)
    assert SECRET not in str(wrong.value)
