"""Which addresses a call reaches through a proxy."""

from __future__ import annotations

import pytest

from socratic_bench.errors import InvalidInput
from socratic_runner.models.http.proxies import proxy_for, shown

PROXY = "http://proxy.test:3128"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("https_proxy", PROXY)
    return monkeypatch


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.9.9.9", "localhost", "LOCALHOST", "a.localhost", "[::1]", "0.0.0.0"],
)
def test_this_machine_needs_no_proxy(host: str):
    assert proxy_for(f"https://{host}:8000/v1") is None


@pytest.mark.parametrize(
    ("listed", "host"),
    [
        ("*", "llm.test"),
        ("llm.test", "llm.test"),
        ("llm.test", "a.llm.test"),
        (".llm.test", "a.llm.test"),
        ("*.llm.test", "a.llm.test"),
        ("other.test, llm.test:443", "llm.test"),
        ("localhost;llm.test", "llm.test"),
        ("localhost llm.test.", "llm.test"),
        ("10.0.0.0/8", "10.1.2.3"),
        ("10.1.2.3", "10.1.2.3"),
        ("10.1.2.3:443", "10.1.2.3"),
        ("fd00::/8", "[fd00::7]"),
        ("[fd00::7]:443", "[fd00::7]"),
        ("localhost,127.0.0.0/8,::1,.svc,.cluster.local", "vllm.models.svc"),
        ("<local>", "gpu-box"),
    ],
)
def test_an_exception_holds_in_every_form_that_systems_write(environment, listed, host):
    environment.setenv("NO_PROXY", listed)
    assert proxy_for(f"https://{host}/v1") is None


@pytest.mark.parametrize(
    ("listed", "host"),
    [
        ("llm.test", "notllm.test"),
        ("llm.test:80", "llm.test"),
        ("10.0.0.0/8", "11.1.2.3"),
        ("10.0.0.0/99", "10.1.2.3"),
        ("10.0.0.0/8", "llm.test"),
        (",", "llm.test"),
        ("<local>", "llm.test"),
    ],
)
def test_an_exception_for_another_host_is_none(environment, listed, host):
    environment.setenv("no_proxy", listed)
    assert proxy_for(f"https://{host}/v1") == PROXY


def test_a_proxy_may_come_without_its_scheme_or_for_all_schemes(environment):
    environment.setenv("https_proxy", "proxy.test:3128")
    assert proxy_for("https://llm.test/v1") == PROXY
    environment.setenv("ALL_PROXY", PROXY)
    assert proxy_for("http://llm.test/v1") == PROXY
    environment.setenv("https_proxy", "socks5://proxy.test")
    with pytest.raises(InvalidInput, match="https_proxy must name a proxy"):
        proxy_for("https://llm.test/v1")


def test_the_user_of_a_proxy_is_not_shown():
    assert shown("http://user:p%40ss@proxy.test:3128/") == PROXY
