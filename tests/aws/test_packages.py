"""The packages: the same bytes each time, small, for each processor, with their bytecode."""

import json
import zipfile

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


def test_the_same_sources_give_the_same_bytes(packages, tmp_path):
    first = json.loads((packages / "packages.json").read_text())
    again = build_packages(tmp_path / "again")
    assert digests(again) == digests(first)
    assert again["release"] == first["release"]


def test_a_package_for_arm_holds_extensions_for_arm(packages, tmp_path):
    listed = build_packages(tmp_path / "arm", "arm64")
    with zipfile.ZipFile(tmp_path / "arm" / "layer.zip") as layer:
        machines = {
            int.from_bytes(layer.read(name)[18:20], "little")
            for name in layer.namelist()
            if name.endswith(".so")
        }
    assert machines == {AARCH64}
    x86 = json.loads((packages / "packages.json").read_text())
    assert {name: digests(listed)[name] for name in SERVICES} == {
        name: digests(x86)[name] for name in SERVICES
    }


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
