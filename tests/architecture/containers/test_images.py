"""The images of the services, and what is locked into them."""

import json
import re
import subprocess
import sys
import tomllib

import pytest

from tests.architecture.containers.container_files import (
    ROOT,
    SERVICES,
    Image,
    environment,
    listening_port,
    probed,
)

STORE_PACKAGES = {"sqlalchemy", "asyncpg", "alembic", "greenlet"}
PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^\s;]+)", re.MULTILINE)


def pins(path: str) -> dict[str, str]:
    return dict(PIN.findall((ROOT / path).read_text()))


# Images


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_runs_the_service_itself_as_a_fixed_user_without_rights(service):
    final = Image.of(service).final
    assert final.only("USER") == "10001:10001"
    assert json.loads(final.only("ENTRYPOINT")) == ["python", "-m", f"socratic_{service}"]
    assert final.only("STOPSIGNAL") == "SIGTERM"
    assert final.all("CMD") == []


@pytest.mark.parametrize("service", SERVICES)
def test_what_builds_an_image_does_not_get_into_it(service):
    build, final = Image.of(service).stages()
    assert build.only("FROM").endswith(" AS build")
    assert [source.split()[0] for source in final.all("COPY")] == ["--from=build"]
    assert not any(re.search(r"\bpip\b", command) for command in final.all("RUN"))


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_starts_from_a_tag_that_names_a_version(service):
    for stage in Image.of(service).stages():
        base = stage.only("FROM").split()[0]
        assert re.fullmatch(r"python:3\.\d+-slim", base), base


@pytest.mark.parametrize("service", SERVICES)
def test_pip_installs_what_has_a_hash_or_what_was_built_here(service):
    commands = [part for run in Image.of(service).all("RUN") for part in run.split(" && ")]
    installing = [
        command for command in commands if re.search(r"\bpip\b.* (install|wheel)", command)
    ]
    assert len(installing) == 4
    for command in installing:
        assert ("--require-hashes" in command) != ("--no-index" in command), command


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_says_whether_it_is_alive_at_the_port_it_listens_on(service):
    options, command = Image.of(service).final.only("HEALTHCHECK").split(" CMD ")
    assert {option.partition("=")[0] for option in options.split()} == {
        "--interval",
        "--timeout",
        "--start-period",
        "--retries",
    }
    port = int(listening_port(service))
    assert probed(json.loads(command)) == ("127.0.0.1", port, "/healthz")
    assert Image.of(service).final.only("EXPOSE") == str(port)


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_is_labelled_as_its_distribution_is(service):
    project = tomllib.loads((ROOT / "services" / service / "pyproject.toml").read_text())["project"]
    labels = Image.of(service).final.assignments("LABEL")
    prefix = "org.opencontainers.image."
    assert labels[f"{prefix}version"] == "$VERSION"
    assert labels[f"{prefix}revision"] == "$REVISION"
    assert labels[f"{prefix}description"] == project["description"]
    assert labels[f"{prefix}licenses"] == project["license"]


def test_the_images_are_built_alike():
    own = {"ARG", "LABEL", "ENV", "EXPOSE", "HEALTHCHECK"}

    def shared(service):
        rest = [(k, r) for k, r in Image.of(service).instructions if k not in own]
        return [(k, re.sub(rf"\b(socratic_)?{service}\b", r"\1SERVICE", r)) for k, r in rest]

    assert [shared(service) for service in SERVICES[1:]] == [shared(SERVICES[0])] * 3


def test_only_what_an_image_is_built_from_is_sent_to_the_engine():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    copied = {
        source
        for service in SERVICES
        for copy in Image.of(service).stages()[0].all("COPY")
        for source in copy.split()[:-1]
    }
    assert let_in == {"services" if s.startswith("services/") else s for s in copied}
    assert "**/.env*" in rules[rules.index("!services") :]


# Locks


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_locked_to_what_the_whole_is_locked_to(service):
    locked = pins(f"services/{service}/requirements.txt")
    assert locked.items() <= pins("constraints.txt").items()
    text = (ROOT / f"services/{service}/requirements.txt").read_text()
    for requirement in re.split(r"\n(?=\S)", text.strip()):
        assert "--hash=sha256:" in requirement, requirement.splitlines()[0]


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_brings_no_tool_of_the_tests_and_no_part_of_the_command(service):
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    tools = {re.split(r"[\[<>=~]", tool)[0].lower() for tool in groups["test"] + groups["build"]}
    assert {"pytest", "hypothesis", "mypy", "hatchling"} <= tools
    locked = pins(f"services/{service}/requirements.txt").keys()
    # The API reads submitted configurations; the scenario packs that they name are YAML.
    reads = {"pyyaml"} if service == "api" else set()
    assert locked & (tools | {"rich", "filelock", "pyyaml"}) == reads


def test_the_judge_brings_no_store():
    assert pins("services/judge/requirements.txt").keys() & STORE_PACKAGES == set()
    assert "SOCRATIC_STORE_URL" not in environment("judge")


WITH_NOTHING_BUT_ITS_LOCK = """
import importlib, importlib.metadata, json, sys

service, locked, broker, store = json.loads(sys.argv[1])
installed = importlib.metadata.packages_distributions()

class NotInTheImage:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top.startswith("socratic_"):
            there = top in ("socratic_bench", "socratic_" + service)
        else:
            owners = {owner.lower().replace("_", "-") for owner in installed.get(top, ())}
            there = not owners or owners & set(locked)
        if not there:
            raise ModuleNotFoundError(f"No module named {name!r} in the image", name=name)

sys.meta_path.insert(0, NotInTheImage())
importlib.import_module(f"socratic_{service}.entrypoints.container")
importlib.import_module("socratic_bench.hosting.http.probe")
addresses = importlib.import_module("socratic_bench.addresses")
addresses.open_broker(broker)
if store:
    addresses.open_store(store)
"""


SERVERS = (
    "amqp://somebody:secret@127.0.0.1:5672/",
    "postgresql://somebody:secret@127.0.0.1:5432/benchmark",
)
ON_AWS = ("sqs://eu-central-1/test", "dynamodb://test?region=eu-central-1")


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    ("lock", "addresses"),
    [("services/{}/requirements.txt", SERVERS), ("deploy/aws/requirements-layer.txt", ON_AWS)],
    ids=["servers", "aws"],
)
def test_a_service_can_be_imported_with_nothing_but_its_lock(service, lock, addresses):
    locked = list(pins(lock.format(service)))
    broker, store = addresses
    if "SOCRATIC_STORE_URL" not in environment(service):
        store = None
    given = json.dumps([service, locked, broker, store])
    done = subprocess.run(
        [sys.executable, "-c", WITH_NOTHING_BUT_ITS_LOCK, given],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_takes_the_lock_of_its_service_unless_another_is_named(service):
    build = Image.of(service).stages()[0]
    assert build.assignments("ARG")["LOCK"] == "requirements.txt"
    copied = build.all("COPY")[1].split()[:-1]
    assert copied == [f"services/{service}/requirements.txt", "deploy/aws/requirements-layer.txt"]
