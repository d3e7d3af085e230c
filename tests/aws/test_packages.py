"""The packages: the same bytes from the same sources, small, for each processor, with bytecode."""

import json
import zipfile
from pathlib import PurePosixPath

import pytest

from tests.aws.environment import build_packages

SERVICES = ("runner", "judge", "curator", "api")
AARCH64 = 183
"""The number of the processor in the head of an ELF file."""


def names(archive):
    with zipfile.ZipFile(archive) as opened:
        return opened.namelist()


def digests(listed):
    return {name: package["sha256"] for name, package in listed["packages"].items()}


@pytest.fixture(scope="module")
def for_arm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages") / "arm"
    build_packages(folder, "arm64")
    return folder


def test_a_package_for_arm_holds_extensions_for_arm(for_arm):
    with zipfile.ZipFile(for_arm / "layer.zip") as layer:
        machines = {
            int.from_bytes(layer.read(name)[18:20], "little")
            for name in layer.namelist()
            if name.endswith(".so")
        }
    assert machines == {AARCH64}


def test_the_same_sources_give_the_same_bytes(packages, for_arm):
    """But for the extensions, and the notes on which wheels there are, both layers are one."""
    built = [json.loads((folder / "packages.json").read_text()) for folder in (packages, for_arm)]
    first, again = ({name: digests(each)[name] for name in SERVICES} for each in built)
    assert first == again
    layers = []
    for folder in (packages, for_arm):
        with zipfile.ZipFile(folder / "layer.zip") as layer:
            entries = layer.infolist()
        paths = [PurePosixPath(each.filename) for each in entries]
        assert paths == sorted(paths)
        assert len({each.date_time for each in entries}) == 1
        layers.append(
            {
                each.filename: (each.CRC, each.external_attr)
                for each in entries
                if not each.filename.endswith(".so") and ".dist-info/" not in each.filename
            }
        )
    assert layers[0] == layers[1] != {}


@pytest.mark.parametrize("service", SERVICES)
def test_a_package_is_far_smaller_than_aws_allows(packages, service):
    listed = json.loads((packages / "packages.json").read_text())["packages"]
    assert listed["layer"]["zipped"] < 20_000_000
    assert listed[service]["zipped"] < 1_000_000
    assert listed[service]["unzipped"] + listed["layer"]["unzipped"] < 80_000_000


@pytest.mark.parametrize("package", [*SERVICES, "layer"])
def test_every_module_comes_with_its_bytecode(packages, package):
    packed = names(packages / f"{package}.zip")
    sources = [name for name in packed if name.endswith(".py")]
    compiled = [name for name in packed if name.endswith(".pyc")]
    assert len(compiled) == len(sources) > 0


def test_the_layer_holds_the_library_and_nothing_of_tests_or_other_brokers(packages):
    packed = names(packages / "layer.zip")
    top = {name.split("/")[1] for name in packed}
    assert {"socratic_bench", "aiobotocore", "pydantic", "starlette"} <= top
    assert top.isdisjoint({"pytest", "hypothesis", "sqlalchemy", "aio_pika", "asyncpg", "boto3"})
    services = {
        name.split("/")[3]
        for name in packed
        if name.startswith("python/botocore/data/") and name.count("/") > 4
    }
    assert "sqs" in services
    assert len(services) < 10
    with zipfile.ZipFile(packages / "layer.zip") as opened:
        endpoints = json.loads(opened.read("python/botocore/data/endpoints.json"))
    [aws] = [each for each in endpoints["partitions"] if each["partition"] == "aws"]
    assert set(aws["services"]) <= services
    assert "eu-central-1" in aws["services"]["dynamodb"]["endpoints"]


@pytest.mark.parametrize("service", SERVICES)
def test_the_package_of_a_function_holds_its_own_code_alone(packages, service):
    assert {name.split("/")[0] for name in names(packages / f"{service}.zip")} == {
        f"socratic_{service}"
    }
