"""The settings of the worker processes: required ones, and mistakes."""

import pytest

from socratic_api.settings import ApiSettings
from socratic_bench.errors import InvalidSettings
from socratic_bench.hosting.starting import new_owner
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


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("8000\r", "contains a carriage return"),
        ("8000\n", "contains a line break"),
        ("tcp://10.96.0.12:8000", "enableServiceLinks: false"),
    ],
)
def test_a_value_that_got_there_by_accident_is_named(monkeypatch, value, problem):
    monkeypatch.setenv("SOCRATIC_PORT", value)
    with pytest.raises(InvalidSettings, match=f"SOCRATIC_PORT: .*{problem}"):
        load_settings(ApiSettings)


def test_an_empty_variable_counts_as_unset(monkeypatch):
    monkeypatch.setenv("SOCRATIC_BROKER_URL", "")
    monkeypatch.setenv("SOCRATIC_PORT", "")
    settings = load_settings(ApiSettings)
    assert (settings.broker_url, settings.port) == (None, 8000)


def test_no_two_processes_have_the_same_name_in_the_store():
    assert len({new_owner("runner") for _ in range(100)}) == 100


def test_a_secret_may_stand_in_a_file(monkeypatch, tmp_path):
    for name, url in ADDRESSES.items():
        (tmp_path / name).write_text(f"{url}\n")
        monkeypatch.setenv(f"{PREFIX}{name.upper()}_FILE", str(tmp_path / name))
    loaded = load_settings(RunnerProcessSettings)
    assert loaded.broker_url.get_secret_value() == ADDRESSES["broker_url"]
    assert loaded.store_url.get_secret_value() == ADDRESSES["store_url"]


def test_keys_of_the_api_may_stand_in_a_file(monkeypatch, tmp_path):
    (tmp_path / "keys").write_text("one-key, another-key\n")
    monkeypatch.setenv("SOCRATIC_API_KEYS_FILE", str(tmp_path / "keys"))
    keys = [key.get_secret_value() for key in load_settings(ApiSettings).api_keys]
    assert keys == ["one-key", "another-key"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "is empty"),
        (b"\xff", "cannot be read: it is not UTF-8 text"),
        (b"x" * 70_000, "has more than 65536 bytes"),
    ],
)
def test_a_file_without_a_secret_is_named(monkeypatch, tmp_path, content, problem):
    path = tmp_path / "broker"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("SOCRATIC_BROKER_URL_FILE", str(path))
    with pytest.raises(InvalidSettings) as raised:
        load_settings(JudgeProcessSettings)
    assert str(raised.value) == f"SOCRATIC_BROKER_URL_FILE: the file {path} {problem}"


def test_a_secret_in_a_file_and_in_the_environment_is_a_mistake(monkeypatch, tmp_path):
    monkeypatch.setenv("SOCRATIC_BROKER_URL", ADDRESSES["broker_url"])
    monkeypatch.setenv("SOCRATIC_BROKER_URL_FILE", str(tmp_path / "broker"))
    with pytest.raises(InvalidSettings, match="set one of the two") as raised:
        load_settings(JudgeProcessSettings)
    assert "hunter2" not in str(raised.value)
