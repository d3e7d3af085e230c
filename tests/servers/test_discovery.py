"""Tests look for a server in a fixed order; without one, the reason names the places."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.servers.discovery import (
    TRUST_SECONDS,
    NotHere,
    Server,
    Source,
    at_standard_port,
    in_environment,
)

VARIABLE = "SOCRATIC_TEST_SOMETHING_URL"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)


def _reachable(*addresses: str) -> Callable[[str], None]:
    def check(address: str) -> None:
        if address not in addresses:
            raise NotHere("connection refused")

    return check


def _server(*addresses: str) -> Server:
    check = _reachable(*addresses)
    places = [
        in_environment(VARIABLE, check),
        at_standard_port("port 1", ["as-one", "as-two"], check),
        at_standard_port("port 2", ["elsewhere"], check),
    ]
    return Server("something", places)


def test_an_address_in_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "mine")
    assert _server("as-one", "mine").address() == "mine"


def test_an_address_in_the_environment_that_does_not_work_is_a_failure_and_no_other_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "mine")
    with pytest.raises(pytest.fail.Exception, match=f"{VARIABLE}.*connection refused"):
        _server("as-one").address()


def test_places_and_ways_in_are_tried_in_their_order() -> None:
    assert _server("as-two", "elsewhere").address() == "as-two"
    assert _server("elsewhere").address() == "elsewhere"


def test_without_a_server_the_test_is_skipped_and_told_of_every_place() -> None:
    server = _server()
    reason = (
        "no something for this test. SOCRATIC_TEST_SOMETHING_URL: not set; "
        "port 1: connection refused; port 2: connection refused"
    )
    for _ in range(2):
        with pytest.raises(pytest.skip.Exception) as skipped:
            server.address()
        assert str(skipped.value) == reason


def test_without_a_server_the_test_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI=true, and no something for this test"):
        _server().address()


def test_a_server_is_looked_for_once_and_stopped_only_where_it_is_not_used() -> None:
    happened: list[str] = []

    def start_in_vain(started: ExitStack) -> str:
        started.callback(happened.append, "stopped in vain")
        raise NotHere("it did not come up")

    def start(started: ExitStack) -> str:
        started.callback(happened.append, "stopped")
        happened.append("started")
        return "ours"

    server = Server("something", [Source("in vain", start_in_vain), Source("here", start)])
    assert [server.address(), server.address()] == ["ours", "ours"]
    assert happened == ["stopped in vain", "started"]


def test_a_server_that_can_no_longer_be_used_is_replaced_by_another() -> None:
    works, now = {"first", "second"}, [0.0]

    def check(address: str) -> None:
        if address not in works:
            raise NotHere("no answer")

    source = at_standard_port("ports", ["first", "second"], check)
    server = Server("something", [source], check=check, clock=lambda: now[0])
    assert server.address() == "first"
    works.remove("first")
    assert server.address() == "first", "it was checked a moment ago"
    now[0] = TRUST_SECONDS
    assert server.address() == "second"
