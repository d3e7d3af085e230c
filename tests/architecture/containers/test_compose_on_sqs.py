"""The compose file of `BROKER=sqs`: the same services as in the other, on an emulator of AWS."""

from __future__ import annotations

import ast
import re

import pytest

from socratic_bench.addresses import open_broker, open_store
from tests.architecture.containers.container_files import ROOT, SERVICES, compose

EMULATOR = "emulator"


def services() -> dict:
    return compose("sqs.yaml")["services"]


def test_it_starts_the_same_services_and_the_emulator_alone_as_a_server():
    started = {name for name in services() if "profiles" not in services()[name]}
    assert started == {*SERVICES, EMULATOR, "prometheus"}
    for name in (*SERVICES, "prometheus"):
        assert services()[name]["extends"] == {"file": "compose.yaml", "service": name}


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_told_the_same_settings_as_with_rabbitmq(service):
    told = services()[service]["environment"]
    addresses = {"SOCRATIC_BROKER_URL", "SOCRATIC_STORE_URL"}
    assert told.keys() == addresses & compose()["services"][service]["environment"].keys()
    assert open_broker(told["SOCRATIC_BROKER_URL"]).__class__.__name__ == "SqsBroker"
    if "SOCRATIC_STORE_URL" in told:
        assert open_store(told["SOCRATIC_STORE_URL"]).__class__.__name__ == "DynamoDBStore"
    for address in told.values():
        assert "endpoint=http://emulator:4566" in address
        assert "bucket=socratic-bench" in address
    assert 'BUCKET: Final = "socratic-bench"' in (ROOT / "deploy/emulator/emulator.py").read_text()


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_waits_for_the_emulator_and_reaches_it_alone(service):
    container = services()[service]
    assert container["depends_on"] == {EMULATOR: {"condition": "service_healthy"}}
    assert container["networks"] == services()[EMULATOR]["networks"]


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_is_that_of_a_task_on_aws(service):
    container = services()[service]
    folder = ROOT / "deploy/aws/socratic_aws"
    source = (folder / "operations/artifacts.py").read_text()
    [extras] = re.findall(rf'^    "{service}": "([a-z,]+)",$', source, re.MULTILINE)
    assert container["build"] == {"args": {"EXTRAS": extras}}
    source = (folder / "stacks/services.py").read_text()
    [ports] = re.findall(r"^PORTS: Final = (.*)$", source, re.MULTILINE)
    port = compose()["services"][service]["build"]["args"]["PORT"]
    assert ast.literal_eval(ports)[service] == port
    assert container["image"] == f"{compose()['services'][service]['image']}-aws"


def test_only_the_runner_reads_keys_and_its_own_credentials_win():
    files = {name: services()[name]["env_file"] for name in SERVICES}
    keys = {"path": "keys.env", "required": False}
    assert files.pop("runner") == ["emulator.env", keys]
    assert set(map(tuple, files.values())) == {("emulator.env",)}


def test_the_emulator_has_no_rights_is_published_on_this_machine_alone_and_keeps_its_data():
    emulator = services()[EMULATOR]
    assert emulator["ports"] == ["127.0.0.1:4566:4566"]
    assert emulator["read_only"] is True
    assert emulator["cap_drop"] == ["ALL"]
    assert emulator["security_opt"] == ["no-new-privileges:true"]
    [volume] = emulator["volumes"]
    image = (ROOT / "deploy/emulator/Dockerfile").read_text()
    assert volume.split(":")[1] in re.findall(r"^VOLUME (\S+)", image, re.MULTILINE)
    assert "USER 10001:10001" in image
    assert "--require-hashes" in image


def test_the_emulator_is_the_one_of_the_tests():
    def version(lock: str) -> list[str]:
        return re.findall(r"^ministack==(\S+)", (ROOT / lock).read_text(), re.MULTILINE)

    assert version("deploy/emulator/requirements.txt") == version("tests/servers/requirements.txt")
