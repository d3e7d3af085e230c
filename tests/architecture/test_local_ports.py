"""`make up-local` gives each service a port that is written down, no two the same, and a broker."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from socratic_bench.adapters.dynamodb.table.address import parse
from socratic_bench.adapters.sqs.connecting.address import address_of

SCRIPT = Path(__file__).parents[2] / "deploy" / "local" / "up.py"


@pytest.fixture
def up(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for variable in (
        *("SOCRATIC_HEALTH_PORT", "RUNNERS", "JUDGES", "CURATORS", "BROKER", "EMULATOR_PORT"),
        *("SOCRATIC_BROKER_URL", "SOCRATIC_STORE_URL", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"),
    ):
        monkeypatch.delenv(variable, raising=False)
    spec = importlib.util.spec_from_file_location("up_local", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def ports(up: ModuleType) -> dict[str, str]:
    return {
        service.name: service.environment["SOCRATIC_HEALTH_PORT"]
        for service in up.planned()
        if service.name != "api"
    }


def test_each_service_has_the_port_that_is_written_down(
    up: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGES", "2")
    assert ports(up) == {
        "runner-1": "9101",
        "judge-1": "9102",
        "judge-2": "9112",
        "curator-1": "9103",
    }


def test_however_many_there_are_no_two_have_the_same(
    up: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in up.WORKERS.values():
        monkeypatch.setenv(variable, str(up.MOST))
    assert len(set(ports(up).values())) == 3 * up.MOST


def test_they_can_be_elsewhere_or_anywhere(up: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOCRATIC_HEALTH_PORT", "9500")
    assert ports(up) == {"runner-1": "9500", "judge-1": "9501", "curator-1": "9502"}
    monkeypatch.setenv("SOCRATIC_HEALTH_PORT", "0")
    assert set(ports(up).values()) == {"0"}
    monkeypatch.setenv("SOCRATIC_HEALTH_PORT", "many")
    with pytest.raises(SystemExit, match="SOCRATIC_HEALTH_PORT: 'many' is not a number from 0 to"):
        up.planned()


def test_without_a_word_the_services_use_the_servers_that_run(
    up: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOCRATIC_STORE_URL", "postgresql://elsewhere/db")
    [told] = {tuple(settings(each.environment)) for each in up.planned()}
    assert told == (up.BROKER_URL, "postgresql://elsewhere/db", "")
    assert up.planned_emulator() is None


def test_over_sqs_all_use_the_emulator_whatever_the_terminal_used_before(
    up: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKER", "sqs")
    monkeypatch.setenv("EMULATOR_PORT", "4700")
    monkeypatch.setenv("SOCRATIC_BROKER_URL", "amqp://guest:guest@127.0.0.1:5672/")
    monkeypatch.setenv("SOCRATIC_STORE_URL", "postgresql://elsewhere/db")
    [(broker, store, key)] = {tuple(settings(each.environment)) for each in up.planned()}
    assert address_of(broker).endpoint == parse(store).endpoint == "http://127.0.0.1:4700"
    assert address_of(broker).bucket == parse(store).bucket is not None
    assert key == "test"
    assert up.planned_emulator().environment["EMULATOR_PORT"] == "4700"


def test_credentials_of_ones_own_are_kept_for_models_on_bedrock(
    up: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKER", "sqs")
    monkeypatch.setenv("AWS_PROFILE", "benchmarks")
    assert {tuple(settings(each.environment))[2] for each in up.planned()} == {""}


def test_an_unknown_broker_is_named(up: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER", "kafka")
    with pytest.raises(SystemExit, match="BROKER: 'kafka' is neither rabbitmq nor sqs"):
        up.planned()


def settings(environment: Mapping[str, str]) -> Iterator[str]:
    for name in ("SOCRATIC_BROKER_URL", "SOCRATIC_STORE_URL", "AWS_ACCESS_KEY_ID"):
        yield environment.get(name, "")
