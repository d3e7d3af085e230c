"""`make up-local` gives each service a port that is written down, and no two the same."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "deploy" / "local" / "up.py"


@pytest.fixture
def up(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for variable in ("SOCRATIC_HEALTH_PORT", "RUNNERS", "JUDGES", "CURATORS"):
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
