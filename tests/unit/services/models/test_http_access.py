"""Where a model over HTTP is reached, with which key, and what is wrong about either."""

from __future__ import annotations

import pytest

from socratic_bench.domain.manifest import TutorModel
from socratic_bench.errors import InvalidInput, MissingCredential, MissingExtra
from socratic_runner.models.http import client as http_client
from socratic_runner.models.presets import PRESETS
from socratic_runner.models.registry import check_access, check_model, fingerprint, open_client

SECRET = "sk-very-secret-9"
VARIABLES = [preset.key_variable for preset in PRESETS.values() if preset.key_variable]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [*VARIABLES, "ANTHROPIC_API_KEY", "http_proxy", "https_proxy"]:
        monkeypatch.delenv(variable, raising=False)


HOSTED = [
    *((f"{name}/some-model", preset.key_variable) for name, preset in PRESETS.items()),
    ("anthropic/claude", "ANTHROPIC_API_KEY"),
]


@pytest.mark.parametrize(("model_id", "variable"), [each for each in HOSTED if each[1]])
def test_a_hosted_model_needs_its_key_in_the_environment(
    model_id: str, variable: str, monkeypatch: pytest.MonkeyPatch
):
    model = TutorModel(id=model_id)
    check_model(model)
    for value in (None, ""):
        if value is not None:
            monkeypatch.setenv(variable, value)
        for check in (check_access, open_client):
            with pytest.raises(MissingCredential, match=f"{model_id}.*{variable} is not set"):
                check(model)
    monkeypatch.setenv(variable, SECRET)
    check_access(model)
    open_client(model)


@pytest.mark.parametrize(
    "model_id", ["ollama/llama3.2", "vllm/meta/llama", "lmstudio/m", "llamacpp/m"]
)
def test_a_server_of_ones_own_needs_no_key(model_id: str):
    check_access(TutorModel(id=model_id))


@pytest.mark.parametrize("model_id", ["openai/gpt", "anthropic/claude"])
def test_the_usual_key_goes_to_the_usual_address_only(
    model_id: str, monkeypatch: pytest.MonkeyPatch
):
    elsewhere = TutorModel(id=model_id, base_url="http://127.0.0.1:1/v1")
    check_access(elsewhere)  # without a key, since none is sent
    named = elsewhere.model_copy(update={"options": {"api_key_env": "OTHER_KEY"}})
    with pytest.raises(MissingCredential, match="OTHER_KEY"):
        check_access(named)
    monkeypatch.setenv("OTHER_KEY", SECRET)
    check_access(named)


def test_the_usual_address_written_out_is_still_the_usual_one():
    with pytest.raises(MissingCredential, match="OPENAI_API_KEY"):
        check_access(TutorModel(id="openai/gpt", base_url="https://api.openai.com/v1/"))


@pytest.mark.parametrize("value", [f"{SECRET}\n", f" {SECRET}", f"{SECRET}\x00", "sk-é", "a b"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(
    value: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("os.environ", {"OPENAI_API_KEY": value})
    with pytest.raises(MissingCredential, match="OPENAI_API_KEY holds something") as refused:
        check_access(TutorModel(id="openai/gpt"))
    assert value.strip() not in str(refused.value)


@pytest.mark.parametrize("value", [SECRET, "sk-proj-Abc", "lower_case", "", "1KEY", "A-B"])
@pytest.mark.parametrize("model_id", ["openai/gpt", "anthropic/claude"])
def test_a_key_in_the_place_of_a_variables_name_is_not_shown(model_id: str, value: str):
    model = TutorModel(id=model_id, options={"api_key_env": value})
    with pytest.raises(InvalidInput, match="option api_key_env") as refused:
        check_model(model)
    assert not value or value not in str(refused.value)


@pytest.mark.parametrize(
    ("base_url", "problem"),
    [
        ("ftp://127.0.0.1/secret", "must begin with http"),
        ("127.0.0.1:8080/secret", "must begin with http"),
        ("http://", "is no address"),
        ("http://host:99999/secret", "is no address"),
        ("http://[::1/secret", "is no address"),
        ("http://user:secret@host/v1", "holds a user or a password"),
        ("https://secret@host/v1", "holds a user or a password"),
        ("https://host/v1?key=secret", "holds a query"),
        ("https://host/v1#secret", "holds a query"),
        ("https://host/v1 secret", "holds white space"),
        ("https://host/v1\nsecret", "holds white space"),
        ("https://hösť/secret", "holds white space or a character"),
        ("", "must begin with http"),
    ],
)
@pytest.mark.parametrize("model_id", ["openai/gpt", "openai-compatible/m", "anthropic/claude"])
def test_a_wrong_base_url_is_refused_and_not_repeated(model_id: str, base_url: str, problem: str):
    with pytest.raises(InvalidInput, match=f"{model_id}: .*{problem}") as refused:
        check_model(TutorModel(id=model_id, base_url=base_url))
    assert "secret" not in str(refused.value)


def test_a_model_of_no_known_place_needs_a_base_url():
    with pytest.raises(InvalidInput, match="openai-compatible models need a base_url"):
        check_model(TutorModel(id="openai-compatible/m"))
    check_model(TutorModel(id="openai-compatible/m", base_url="https://host:8443/some/path/v1/"))


@pytest.mark.parametrize(
    ("model_id", "options", "problem"),
    [
        ("openai/gpt", {"temperature": 1}, "there is no option 'temperature' here"),
        ("openai/gpt", {"stream": "yes"}, "option stream"),
        ("openai/gpt", {"omit": ["model"]}, "option omit"),
        ("openai/gpt", {"extra_body": {"model": "other"}}, "model cannot be set here"),
        ("openai/gpt", {"extra_body": {"stream": True}}, "stream cannot be set here"),
        ("openai/gpt", {"extra_body": {"max_tokens": 9}}, "max_tokens cannot be set here"),
        ("anthropic/claude", {"extra_body": {"max_tokens": 9}}, "max_tokens cannot be set here"),
        ("anthropic/claude", {"extra_body": {"system": ""}}, "system cannot be set here"),
        ("anthropic/claude", {"omit": ["max_tokens"]}, "option omit"),
    ],
)
def test_a_wrong_option_is_refused(model_id: str, options: dict[str, object], problem: str):
    with pytest.raises(InvalidInput, match=f"{model_id}: .*{problem}"):
        check_model(TutorModel(id=model_id, options=options))


@pytest.mark.parametrize("model_id", ["ollama/llama3.2", "anthropic/claude"])
def test_without_aiohttp_the_model_is_checked_and_the_access_refused(
    model_id: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(http_client, "find_spec", lambda name: None)
    model = TutorModel(id=model_id)
    check_model(model)
    for check in (check_access, open_client):
        with pytest.raises(MissingExtra, match=r"socratic-ai-bench-runner\[http\]"):
            check(model)


def test_a_proxy_that_cannot_be_used_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("http_proxy", "socks5://user:secret@proxy:1080")
    with pytest.raises(InvalidInput, match="http_proxy must name") as refused:
        open_client(TutorModel(id="ollama/llama3.2", base_url="http://host/v1"))
    assert "secret" not in str(refused.value)


def test_no_file_decides_about_the_responses():
    assert fingerprint(TutorModel(id="openai/gpt")) is None
    assert fingerprint(TutorModel(id="anthropic/claude")) is None
