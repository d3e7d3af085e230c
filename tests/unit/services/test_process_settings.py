"""The settings of the worker processes: what is needed, and what is wrong."""

import pytest

from socratic_bench.errors import InvalidSettings
from socratic_bench.hosting.owners import new_owner
from socratic_bench.service_settings import PREFIX, load_settings
from socratic_curator.settings import CuratorProcessSettings
from socratic_judge.settings import JudgeProcessSettings
from socratic_runner.settings import RunnerProcessSettings

KINDS = {
    "runner": RunnerProcessSettings,
    "judge": JudgeProcessSettings,
    "curator": CuratorProcessSettings,
}
ADDRESSES = {
    "broker_url": "amqp://me:hunter2@host/",
    "store_url": "postgresql://me:hunter2@host/db",
}


@pytest.fixture(autouse=True)
def no_addresses(monkeypatch):
    for name in ADDRESSES:
        monkeypatch.delenv(f"{PREFIX}{name.upper()}", raising=False)


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        (RunnerProcessSettings, {"SOCRATIC_BROKER_URL", "SOCRATIC_STORE_URL"}),
        (JudgeProcessSettings, {"SOCRATIC_BROKER_URL"}),
        (CuratorProcessSettings, {"SOCRATIC_BROKER_URL", "SOCRATIC_STORE_URL"}),
    ],
)
def test_what_is_needed_is_named_all_at_once(settings, needed):
    with pytest.raises(InvalidSettings) as raised:
        load_settings(settings)
    problems = str(raised.value).removeprefix("wrong settings: ").split("; ")
    assert {problem.partition(":")[0] for problem in problems} == needed


@pytest.mark.parametrize("settings", KINDS.values())
def test_addresses_are_secret_and_health_is_served_on_this_machine_alone(settings):
    loaded = load_settings(settings, **ADDRESSES)
    assert "hunter2" not in repr(loaded)
    assert "hunter2" not in loaded.model_dump_json()
    assert loaded.health_host == "127.0.0.1"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HEALTH_PORT", "70000"),
        ("START_DEADLINE", "0"),
        ("DRAIN_DEADLINE", "-1"),
        ("LOG_LEVEL", "loud"),
        ("RUNNER_FOLDER", "/no/such/folder"),
        ("RUNNER_LEASE_MARGIN", "never"),
        ("BROKER_URL", ""),
    ],
)
def test_a_wrong_setting_is_named_and_its_value_is_not_told(monkeypatch, name, value):
    for address, url in ADDRESSES.items():
        monkeypatch.setenv(f"{PREFIX}{address.upper()}", url)
    monkeypatch.setenv(f"{PREFIX}{name}", value)
    with pytest.raises(InvalidSettings, match=f"SOCRATIC_{name}: ") as raised:
        load_settings(RunnerProcessSettings)
    assert "hunter2" not in str(raised.value)


def test_no_two_processes_have_the_same_name_in_the_store():
    assert len({new_owner("runner") for _ in range(100)}) == 100
