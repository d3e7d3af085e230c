"""The address and the key of a model over HTTP, and mistakes in either."""

from __future__ import annotations

import sys

import pytest
from pydantic import JsonValue

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput, MissingCredential, MissingExtra, UnlistedEndpoint
from socratic_bench.providers.built_in import PRESETS
from socratic_bench.providers.endpoints import ANYWHERE, Endpoint, Endpoints, KeySource
from socratic_bench.providers.registry import check_model, fingerprint
from socratic_runner.models.registry import check_access, open_client

SECRET = "sk-very-secret-9"
VARIABLES = [preset.key_variable for preset in PRESETS.values() if preset.key_variable]
ELSEWHERE = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [*VARIABLES, "ANTHROPIC_API_KEY", "http_proxy", "https_proxy"]:
        monkeypatch.delenv(variable, raising=False)


HOSTED = [
    *((f"{name}/some-model", preset.key_variable) for name, preset in PRESETS.items()),
    ("anthropic/claude", "ANTHROPIC_API_KEY"),
]


@pytest.mark.parametrize(("model_id", "variable"), [each for each in HOSTED if each[1]])
def test_a_hosted_model_needs_its_key_in_the_environment_and_nothing_else(
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
def test_a_server_of_ones_own_needs_no_key_and_in_a_service_a_place_in_its_list(model_id: str):
    model = TutorModel(id=model_id)
    check_access(model, endpoints=ANYWHERE)
    with pytest.raises(UnlistedEndpoint, match=r"http://127.* may not be called .*SOCRATIC_ENDP"):
        check_access(model)
    own = PRESETS[model.provider].base_url
    check_access(model, endpoints=Endpoints((Endpoint("here", own.removesuffix("/v1")),)))


def test_a_key_may_stand_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path):
    model, path = TutorModel(id="openai/gpt"), tmp_path / "openai"
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(path))
    with pytest.raises(MissingCredential, match=f"openai/gpt: OPENAI_API_KEY_FILE: .*{path}"):
        check_access(model)
    path.write_text(f"{SECRET}\n")
    check_access(model)
    path.write_text(f"{SECRET} and more\n")
    with pytest.raises(MissingCredential, match="holds no valid key") as refused:
        check_access(model)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("model_id", ["openai/gpt", "anthropic/claude"])
def test_the_usual_key_goes_to_the_usual_address_only(
    model_id: str, monkeypatch: pytest.MonkeyPatch
):
    elsewhere = TutorModel(id=model_id, base_url=f"{ELSEWHERE}/v1")
    check_access(elsewhere, endpoints=ANYWHERE)  # without a key, since none is sent
    bound = ANYWHERE.allowing([("OTHER_KEY", ELSEWHERE)])
    with pytest.raises(MissingCredential, match="OTHER_KEY"):
        check_access(elsewhere, endpoints=bound, key_variable="OTHER_KEY")
    monkeypatch.setenv("OTHER_KEY", SECRET)
    check_access(elsewhere, endpoints=bound, key_variable="OTHER_KEY")


def test_a_key_goes_nowhere_it_is_not_bound_to(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTHER_KEY", SECRET)
    elsewhere = TutorModel(id="openai/gpt", base_url=f"{ELSEWHERE}/v1")
    for endpoints in (ANYWHERE, Endpoints((Endpoint("x", ELSEWHERE, KeySource("A_KEY")),))):
        with pytest.raises(UnlistedEndpoint, match="may not be called with the key in OTHER_KEY"):
            open_client(elsewhere, endpoints=endpoints, key_variable="OTHER_KEY")


def test_the_usual_address_written_out_is_still_the_usual_one():
    for spelled in ("https://api.openai.com/v1/", "https://API.OpenAI.com:443/v1"):
        with pytest.raises(MissingCredential, match="OPENAI_API_KEY"):
            check_access(TutorModel(id="openai/gpt", base_url=spelled))


@pytest.mark.parametrize(
    "base_url",
    [
        "http://api.openai.com/v1",
        "https://api.openai.com:444/v1",
        "https://api.openai.com.evil.example/v1",
        "https://evil.example/https://api.openai.com/v1",
        "https://api-openai.com/v1",
    ],
)
def test_an_address_like_the_usual_one_is_another(base_url, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with pytest.raises(UnlistedEndpoint):
        open_client(TutorModel(id="openai/gpt", base_url=base_url))


@pytest.mark.parametrize("value", [f"{SECRET}\n", f" {SECRET}", f"{SECRET}\x00", "sk-é", "a b"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(
    value: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("os.environ", {"OPENAI_API_KEY": value})
    with pytest.raises(MissingCredential, match="OPENAI_API_KEY holds no valid key") as refused:
        check_access(TutorModel(id="openai/gpt"))
    assert value.strip() not in str(refused.value)


@pytest.mark.parametrize("model_id", ["openai/gpt", "anthropic/claude"])
def test_a_plan_that_names_an_environment_variable_is_not_obeyed(
    model_id: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OTHER_KEY", SECRET)
    model = TutorModel(id=model_id, base_url=ELSEWHERE, options={"api_key_env": "OTHER_KEY"})
    listed = Endpoints((Endpoint("x", ELSEWHERE, KeySource("OTHER_KEY")),))
    with pytest.raises(InvalidInput, match=r"names an environment variable.*SOCRATIC_ENDPOINTS"):
        open_client(model, endpoints=listed)


@pytest.mark.parametrize(
    ("base_url", "problem"),
    [
        ("ftp://127.0.0.1/secret", "must begin with http"),
        ("127.0.0.1:8080/secret", "must begin with http"),
        ("http://", "has a wrong host or port"),
        ("http://host:99999/secret", "has a wrong host or port"),
        ("http://[::1/secret", "has a wrong host or port"),
        ("http://user:secret@host/v1", "holds a user or a password"),
        ("https://secret@host/v1", "holds a user or a password"),
        ("https://host/v1?key=secret", "may hold a key in its query"),
        ("https://host/v1?api-version=1&sig=secret", "may hold a key in its query"),
        ("https://host/v1?secret", "holds a query or a fragment that is not"),
        ("https://host/v1?api-version=1#secret", "holds a query or a fragment that is not"),
        ("https://host/v1#secret", "holds a query"),
        ("https://host/v1 secret", "holds white space"),
        ("https://host/v1\nsecret", "holds white space"),
        ("https://hösť/secret", "holds white space or a character"),
        ("", "must begin with http"),
        ("http://169.254.169.254/latest/secret", "is never called"),
        ("http://[::ffff:169.254.169.254]/secret", "is never called"),
        ("http://2852039166/secret", "is never called"),
        ("http://[fe80::1]/secret", "is never called"),
        ("http://host\\\\@other/secret", "holds a user or a password"),
        ("http://ho%73t/secret", "has a wrong host or port"),
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
        ("openai/gpt", {"temperature": 1}, "write `parameters: {temperature: "),
        ("openai/gpt", {"stream": "yes"}, "option stream"),
        ("openai/gpt", {"omit": ["model"]}, "option omit"),
        ("openai/gpt", {"extra_body": {"model": "other"}}, "model cannot be set here"),
        ("openai/gpt", {"extra_body": {"stream": True}}, "stream cannot be set here"),
        (
            "openai/gpt",
            {"extra_body": {"max_tokens": 9}},
            "is its `parameters: {max_tokens: 4000}`",
        ),
        ("anthropic/claude", {"extra_body": {"max_tokens": 9}}, "max_tokens cannot be set here"),
        ("anthropic/claude", {"extra_body": {"system": ""}}, "system cannot be set here"),
        ("anthropic/claude", {"omit": ["max_tokens"]}, "option omit"),
        ("openai/gpt", {"headers": {"api-key": "x"}}, "set key_header: api-key"),
        ("openai/gpt", {"headers": {"X-Team": "Bearer x"}}, "set key_header: X-Team"),
        ("openai/gpt", {"headers": {"Host": "x"}}, "is a header of the client's own"),
        ("openai/gpt", {"headers": {"a b": "x"}}, "is not the name of a header"),
        ("openai/gpt", {"headers": {"X-Team": "x\r\ny"}}, "one line of plain ASCII"),
        ("openai/gpt", {"headers": {"X-Team": "x", "x-team": "y"}}, "names a header twice"),
        ("openai/gpt", {"headers": {"X-A": "x"}, "key_header": "x-a"}, "among the headers too"),
    ],
)
def test_a_wrong_option_is_refused(model_id: str, options: dict[str, JsonValue], problem: str):
    with pytest.raises(InvalidInput, match=f"{model_id}: .*{problem}"):
        check_model(TutorModel(id=model_id, options=options))


@pytest.mark.parametrize("model_id", ["ollama/llama3.2", "anthropic/claude"])
def test_without_aiohttp_the_model_is_checked_and_the_access_refused(
    model_id: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "aiohttp", None)  # as if it were not installed
    model = TutorModel(id=model_id)
    check_model(model)
    for check in (check_access, open_client):
        with pytest.raises(MissingExtra, match=r"socratic-ai-bench-runner\[http\]"):
            check(model, endpoints=ANYWHERE)


def test_a_proxy_that_cannot_be_used_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("http_proxy", "socks5://user:secret@proxy:1080")
    model = TutorModel(id="ollama/llama3.2", base_url="http://host/v1")
    with pytest.raises(InvalidInput, match="http_proxy must name") as refused:
        open_client(model, endpoints=ANYWHERE)
    assert "secret" not in str(refused.value)


def test_no_file_decides_about_the_responses():
    assert fingerprint(TutorModel(id="openai/gpt")) is None
    assert fingerprint(TutorModel(id="anthropic/claude")) is None
