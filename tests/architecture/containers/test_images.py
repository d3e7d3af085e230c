"""The images of the services, and the libraries that each takes from the lock file."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.containers.container_files import (
    ROOT,
    SERVICES,
    Image,
    compose,
    environment,
    listening_port,
    probed,
)

COMMAND = Image.read(ROOT / "services" / "Dockerfile", VERSION="1.2.3")
STORE_PACKAGES = {"sqlalchemy", "asyncpg", "alembic", "greenlet"}


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_runs_the_service_itself_as_a_fixed_user_without_rights(service):
    final = Image.of(service).final
    assert final.only("USER") == "10001:10001"
    # `exec`: the service is the process that is told to stop.
    assert json.loads(final.only("ENTRYPOINT")) == [
        "sh",
        "-c",
        f"exec python -m socratic_{service}",
    ]
    assert final.only("STOPSIGNAL") == "SIGTERM"
    assert final.all("CMD") == []


def test_the_command_runs_as_a_fixed_user_without_rights_in_a_folder_of_the_user():
    final = COMMAND.target("command")
    assert final.only("USER") == "10001:10001"
    assert json.loads(final.only("ENTRYPOINT")) == ["socratic-bench"]
    assert final.only("WORKDIR") == "/work"
    assert (final.all("EXPOSE"), final.all("HEALTHCHECK")) == ([], [])
    labels = final.assignments("LABEL")
    assert labels["org.opencontainers.image.title"] == "socratic-bench"
    assert labels["org.opencontainers.image.version"] == "1.2.3"


@pytest.mark.parametrize(("name", "build"), [("service", "build"), ("command", "build-command")])
def test_what_builds_an_image_does_not_get_into_it(name, build):
    final = COMMAND.target(name)
    assert [source.split()[0] for source in final.all("COPY")] == [f"--from={build}"]
    assert not any(re.search(r"\bpip\b", command) for command in final.all("RUN"))


def test_an_image_starts_from_a_tag_that_names_a_version():
    stages = COMMAND.stages()
    bases = {stage.base for stage in stages} - {stage.name for stage in stages}
    assert bases
    for base in bases:
        assert re.fullmatch(r"python:3\.\d+-slim", base), base


def test_pip_installs_what_has_a_hash_or_what_was_built_here():
    commands = [part for run in Image.of("judge").all("RUN") for part in run.split(" && ")]
    fetching = [each for each in commands if re.search(r"\bpip\b.* (download|install|wheel)", each)]
    assert any("--require-hashes" in command for command in fetching)
    for command in fetching:
        assert ("--require-hashes" in command) != ("--no-index" in command), command


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_says_whether_it_is_alive_at_the_port_it_listens_on(service):
    final = Image.of(service).final
    _, _, command = final.only("HEALTHCHECK").partition(" CMD ")
    port = listening_port(service)
    told = final.assignments("ENV")["SOCRATIC_HEALTH_PORT"]
    words = shlex.split(command.replace("$SOCRATIC_HEALTH_PORT", told))
    assert probed(words) == ("127.0.0.1", int(port), "/healthz")
    assert final.only("EXPOSE") == port


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_is_labelled_with_its_service_version_commit_and_licence(service):
    project = tomllib.loads((ROOT / "services" / service / "pyproject.toml").read_text())["project"]
    image = Image.of(service, VERSION="1.2.3", REVISION="4f8e65e")
    labels = image.final.assignments("LABEL")
    prefix = "org.opencontainers.image."
    assert labels[f"{prefix}title"] == f"socratic-bench-{service}"
    assert labels[f"{prefix}version"] == "1.2.3"
    assert labels[f"{prefix}revision"] == "4f8e65e"
    assert labels[f"{prefix}licenses"] == project["license"]


def test_only_what_an_image_is_built_from_is_sent_to_the_engine():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    copied = {
        source
        for copy in COMMAND.all("COPY")
        for source in copy.split()[:-1]
        if not copy.startswith("--from")
    }
    assert let_in == copied - {"services/$SERVICE"}
    assert "**/.env*" in rules[rules.index("!services") :]


def libraries(service: str, extras: str) -> set[str]:
    """The distributions that `pip install NAME[EXTRAS]` of a service leads to, ours left out."""
    found: set[tuple[str, str]] = set()
    waiting = [Requirement(f"socratic-ai-bench-{service}[{extras}]")]
    while waiting:
        need = waiting.pop()
        for extra in ("", *need.extras):
            if (need.name, extra) in found:
                continue
            found.add((need.name, extra))
            waiting += [
                inner
                for text in requires(need.name) or ()
                if (inner := Requirement(text)).marker is None
                or inner.marker.evaluate({"extra": extra})
            ]
    names = {canonicalize_name(name) for name, _ in found}
    return {name for name in names if not name.startswith("socratic-ai-bench")}


def extras_of(service: str, file: str = "compose.yaml") -> str:
    return compose(file)["services"][service]["build"]["args"]["EXTRAS"]


@pytest.mark.parametrize("file", ["compose.yaml", "sqs.yaml"])
@pytest.mark.parametrize("service", SERVICES)
def test_a_service_takes_locked_libraries_and_no_tool_of_tests_or_the_command(service, file):
    text = (ROOT / "constraints.txt").read_text()
    locked = {re.match(r"[a-z0-9._-]+", block)[0] for block in re.split(r"\n(?=\S)", text.strip())}
    taken = libraries(service, extras_of(service, file))
    assert taken <= locked
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    tools = {canonicalize_name(Requirement(tool).name) for tool in groups["test"] + groups["build"]}
    assert {"pytest", "hypothesis", "mypy", "hatchling"} <= tools
    # The API reads submitted configurations; the scenario packs that they name are YAML.
    reads = {"pyyaml"} if service == "api" or (service, file) == ("curator", "sqs.yaml") else set()
    assert taken & (tools | {"rich", "filelock", "pyyaml"}) == reads


def test_the_judge_brings_no_store():
    assert libraries("judge", extras_of("judge")) & STORE_PACKAGES == set()
    assert "SOCRATIC_STORE_URL" not in environment("judge")


WITH_NOTHING_BUT_ITS_LIBRARIES = """
import importlib, importlib.metadata, json, sys

service, libraries, broker, store = json.loads(sys.argv[1])
installed = importlib.metadata.packages_distributions()

class NotInTheImage:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top.startswith("socratic_"):
            there = top in ("socratic_bench", "socratic_" + service)
        else:
            owners = {owner.lower().replace("_", "-") for owner in installed.get(top, ())}
            there = not owners or owners & set(libraries)
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
    ("file", "addresses"),
    [("compose.yaml", SERVERS), ("sqs.yaml", ON_AWS)],
    ids=["servers", "aws"],
)
def test_a_service_can_be_imported_with_nothing_but_its_libraries(service, file, addresses):
    taken = sorted(libraries(service, extras_of(service, file)))
    broker, store = addresses
    if "SOCRATIC_STORE_URL" not in environment(service):
        store = None
    given = json.dumps([service, taken, broker, store])
    done = subprocess.run(
        [sys.executable, "-c", WITH_NOTHING_BUT_ITS_LIBRARIES, given],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
