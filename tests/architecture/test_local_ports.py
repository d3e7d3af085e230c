"""`make up-local` gives each service a port that is written down, no two the same, and a broker."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from socratic_bench.adapters.brokers.sqs.address import address_of
from socratic_bench.adapters.stores.dynamodb.clients import parse

SCRIPT = Path(__file__).parents[2] / "deploy" / "local" / "up.py"

ON_SQS = {"BROKER": "sqs", "EMULATOR_PYTHON": sys.executable}


@pytest.fixture(scope="module")
def up() -> ModuleType:
    spec = importlib.util.spec_from_file_location("up_local", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def ports(up: ModuleType, **given: str) -> dict[str, str]:
    return {
        service.name: service.environment["SOCRATIC_HEALTH_PORT"]
        for service in up.planned(given).services
        if service.name != "api"
    }


def addresses(up: ModuleType, **given: str) -> tuple[str, str, str]:
    """The broker, the store and the key that all services get."""
    names = ("SOCRATIC_BROKER_URL", "SOCRATIC_STORE_URL", "AWS_ACCESS_KEY_ID")
    services = up.planned(given).services
    [told] = {tuple(each.environment.get(name, "") for name in names) for each in services}
    return told


def test_each_service_has_the_port_that_is_written_down(up: ModuleType) -> None:
    assert ports(up, JUDGES="2") == {
        "runner-1": "9101",
        "judge-1": "9102",
        "judge-2": "9112",
        "curator-1": "9103",
    }


def test_however_many_there_are_no_two_have_the_same(up: ModuleType) -> None:
    many = ports(up, RUNNERS="64", JUDGES="64", CURATORS="64")
    assert len(set(many.values())) == 3 * 64


def test_they_can_be_elsewhere_or_anywhere(up: ModuleType) -> None:
    assert ports(up, SOCRATIC_HEALTH_PORT="9500") == {
        "runner-1": "9500",
        "judge-1": "9501",
        "curator-1": "9502",
    }
    assert set(ports(up, SOCRATIC_HEALTH_PORT="0").values()) == {"0"}
    with pytest.raises(SystemExit, match="SOCRATIC_HEALTH_PORT: 'many' is not a whole number"):
        up.planned({"SOCRATIC_HEALTH_PORT": "many"})


def test_without_a_word_the_services_use_the_servers_that_run(up: ModuleType) -> None:
    store = "postgresql://elsewhere/db"
    told = addresses(up, SOCRATIC_STORE_URL=store)
    assert told == ("amqp://guest:guest@127.0.0.1:5672/", store, "")
    assert up.planned({}).emulator is None


def test_over_sqs_all_use_the_emulator_whatever_the_terminal_used_before(up: ModuleType) -> None:
    given = {
        **ON_SQS,
        "EMULATOR_PORT": "4700",
        "SOCRATIC_BROKER_URL": "amqp://guest:guest@127.0.0.1:5672/",
        "SOCRATIC_STORE_URL": "postgresql://elsewhere/db",
    }
    broker, store, key = addresses(up, **given)
    assert address_of(broker).endpoint == parse(store).endpoint == "http://127.0.0.1:4700"
    assert address_of(broker).bucket == parse(store).bucket is not None
    assert key == "test"
    assert up.planned(given).emulator.environment["EMULATOR_PORT"] == "4700"


def test_credentials_of_ones_own_are_kept_for_models_on_bedrock(up: ModuleType) -> None:
    assert addresses(up, **ON_SQS, AWS_PROFILE="benchmarks")[2] == ""


def test_an_unknown_broker_is_named(up: ModuleType) -> None:
    with pytest.raises(SystemExit, match="BROKER: 'kafka' is neither rabbitmq nor sqs"):
        up.planned({"BROKER": "kafka"})


def test_a_missing_emulator_is_named(up: ModuleType) -> None:
    with pytest.raises(SystemExit, match="EMULATOR_PYTHON: /missing/python is missing; make "):
        up.planned({"BROKER": "sqs", "EMULATOR_PYTHON": "/missing/python"})


def test_a_line_that_is_not_of_the_log_is_shown_as_it_is(
    up: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    for line in ("Traceback", "[1, 2]", "3", '{"level": "info"}'):
        up.Service("judge-1", [], {}).show(line)
        assert capsys.readouterr().out == f"judge-1    | {line}\n"
