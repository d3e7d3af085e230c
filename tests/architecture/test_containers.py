"""The images and the compose file keep their promises. No container engine is needed."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from socratic_api.settings import ApiSettings
from socratic_curator.settings import CuratorProcessSettings
from socratic_judge.settings import JudgeProcessSettings
from socratic_runner.settings import RunnerProcessSettings

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "deploy" / "compose"
SETTINGS = {
    "runner": RunnerProcessSettings,
    "judge": JudgeProcessSettings,
    "curator": CuratorProcessSettings,
    "api": ApiSettings,
}
SERVICES = tuple(SETTINGS)
SERVERS = ("rabbitmq", "postgres")
MONITORING = "prometheus"
STORE_PACKAGES = {"sqlalchemy", "asyncpg", "alembic", "greenlet"}
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^\s;]+)", re.MULTILINE)


@dataclass(frozen=True)
class Image:
    """A Dockerfile, as its instructions: the keyword and what follows it, in one line."""

    instructions: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, service: str) -> "Image":
        text = (ROOT / "services" / service / "Dockerfile").read_text()
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
        whole = "\n".join(lines).replace("\\\n", " ")
        words = [line.split(maxsplit=1) for line in whole.splitlines() if line.strip()]
        return cls(tuple((keyword, " ".join(rest.split())) for keyword, rest in words))

    def stages(self) -> list["Image"]:
        starts = [i for i, (keyword, _) in enumerate(self.instructions) if keyword == "FROM"]
        ends = [*starts[1:], len(self.instructions)]
        pairs = zip(starts, ends, strict=True)
        return [Image(self.instructions[start:end]) for start, end in pairs]

    @property
    def final(self) -> "Image":
        return self.stages()[-1]

    def all(self, keyword: str) -> list[str]:
        return [rest for name, rest in self.instructions if name == keyword]

    def only(self, keyword: str) -> str:
        (rest,) = self.all(keyword)
        return rest

    def assignments(self, keyword: str) -> dict[str, str]:
        pairs = [pair for rest in self.all(keyword) for pair in shlex.split(rest)]
        return dict(pair.split("=", 1) for pair in pairs)


def interpolated(value, environment):
    """The compose file's variables replaced, by their defaults where they are not given."""
    if isinstance(value, str):
        return VARIABLE.sub(lambda m: environment.get(m[1], m[2] or ""), value)
    if isinstance(value, list):
        return [interpolated(each, environment) for each in value]
    if isinstance(value, dict):
        return {key: interpolated(each, environment) for key, each in value.items()}
    return value


def compose(**environment):
    text = (COMPOSE / "compose.yaml").read_text()
    return interpolated(yaml.safe_load(text), environment)


def seconds(duration: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(s|m)", duration).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


def pins(path: str) -> dict[str, str]:
    return dict(PIN.findall((ROOT / path).read_text()))


def environment(service: str) -> dict[str, str]:
    """The environment of a service in its container: from its image and the compose file."""
    in_image = Image.of(service).final.assignments("ENV")
    return in_image | compose()["services"][service]["environment"]


def listening_port(service: str) -> str:
    told = environment(service)
    return told.get("SOCRATIC_HEALTH_PORT") or told["SOCRATIC_PORT"]


def probed(test: list[str]) -> tuple[str, int | None, str]:
    *command, url = test
    assert command == ["python", "-m", "socratic_bench.hosting.http.probe"]
    parts = urlsplit(url)
    return parts.hostname or "", parts.port, parts.path


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
    assert locked & (tools | {"rich", "filelock", "pyyaml"}) == set()


def test_the_judge_brings_no_store():
    assert pins("services/judge/requirements.txt").keys() & STORE_PACKAGES == set()
    assert "SOCRATIC_STORE_URL" not in environment("judge")


WITH_NOTHING_BUT_ITS_LOCK = """
import importlib, importlib.metadata, json, sys

service, locked, has_store = json.loads(sys.argv[1])
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
addresses.open_broker("amqp://somebody:secret@127.0.0.1:5672/")
if has_store:
    addresses.open_store("postgresql://somebody:secret@127.0.0.1:5432/benchmark")
"""


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_can_be_imported_with_nothing_but_its_lock(service):
    locked = list(pins(f"services/{service}/requirements.txt"))
    given = json.dumps([service, locked, "SOCRATIC_STORE_URL" in environment(service)])
    done = subprocess.run(
        [sys.executable, "-c", WITH_NOTHING_BUT_ITS_LOCK, given],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# Compose


def test_compose_starts_all_services_and_both_servers():
    services = compose()["services"]
    assert {name for name in services if "profiles" not in services[name]} == {*SERVICES, *SERVERS}


def test_a_profile_adds_prometheus_which_scrapes_every_service_and_loads_the_alert_rules():
    services = compose()["services"]
    prometheus = services[MONITORING]
    assert prometheus["profiles"] == ["monitoring"]
    mounted = {
        mount["target"]: (COMPOSE / mount["source"]).resolve()
        for mount in prometheus["volumes"]
        if isinstance(mount, dict)
    }
    [told] = [word for word in prometheus["command"] if word.startswith("--config.file=")]
    config = yaml.safe_load(mounted[told.partition("=")[2]].read_text())
    [rules] = config["rule_files"]
    folder, _, pattern = rules.rpartition("/")
    assert list(mounted[folder].glob(pattern))
    targets = {}
    for job in config["scrape_configs"]:
        found = [f"{each['names'][0]}:{each['port']}" for each in job.get("dns_sd_configs", [])]
        found += [target for each in job.get("static_configs", []) for target in each["targets"]]
        targets[job["job_name"]] = found
    assert targets == {service: [f"{service}:{listening_port(service)}"] for service in SERVICES}
    for service in SERVICES:
        assert set(services[service]["networks"]) & set(prometheus["networks"])
    assert "api" in environment("api")["SOCRATIC_ALLOWED_HOSTS"].split(",")


@pytest.mark.parametrize("service", ["runner", "judge", "curator"])
def test_a_service_that_may_be_scaled_publishes_no_port(service):
    assert "ports" not in compose()["services"][service]


@pytest.mark.parametrize("name", [*SERVICES, *SERVERS, MONITORING])
def test_everything_in_compose_is_watched_limited_and_started_again(name):
    service = compose()["services"][name]
    check = service["healthcheck"]
    assert check["test"][0] == "CMD"
    assert seconds(check["timeout"]) <= seconds(check["interval"])
    limits = service["deploy"]["resources"]["limits"]
    assert float(limits["cpus"]) <= 1  # more than a machine has is refused
    assert re.fullmatch(r"\d+[mg]", limits["memory"])
    assert service["restart"] == "unless-stopped"
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "max-size" in service["logging"]["options"]


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_in_compose_can_write_nothing_but_its_tmp(service):
    container = compose()["services"][service]
    assert container["read_only"] is True
    assert [mount.partition(":")[0] for mount in container["tmpfs"]] == ["/tmp"]
    assert container["cap_drop"] == ["ALL"]
    assert not {"privileged", "cap_add", "user"} & container.keys()
    assert all(volume["read_only"] for volume in container.get("volumes", []))


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_waits_for_the_servers_it_is_sent_to_and_can_reach_them(service):
    services = compose()["services"]
    told = environment(service)
    urls = {told[name] for name in told if name in {"SOCRATIC_BROKER_URL", "SOCRATIC_STORE_URL"}}
    servers = {urlsplit(url).hostname for url in urls}
    assert services[service]["depends_on"] == {
        server: {"condition": "service_healthy"} for server in servers
    }
    for server in servers:
        assert set(services[server]["networks"]) & set(services[service]["networks"])


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_told_nothing_it_has_no_setting_for_and_all_it_must_be_told(service):
    told = {name for name in environment(service) if name.startswith("SOCRATIC_")}
    fields = SETTINGS[service].model_fields
    known = {f"SOCRATIC_{name.upper()}": field for name, field in fields.items()}
    assert told <= known.keys()
    assert {name for name, field in known.items() if field.is_required()} <= told


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_hears_that_it_is_to_stop_and_has_the_time_it_is_promised(service):
    container = compose()["services"][service]
    assert container["init"] is True
    fields = SETTINGS[service].model_fields
    assert seconds(container["stop_grace_period"]) > fields["drain_deadline"].default
    assert seconds(container["healthcheck"]["start_period"]) > fields["start_deadline"].default


@pytest.mark.parametrize("service", SERVICES)
def test_compose_waits_until_a_service_is_ready(service):
    test = compose()["services"][service]["healthcheck"]["test"]
    assert probed(test[1:]) == ("127.0.0.1", int(listening_port(service)), "/readyz")
    told = environment(service)
    assert "0.0.0.0" in {told.get("SOCRATIC_HEALTH_HOST"), told.get("SOCRATIC_HOST")}


def test_nothing_is_published_beyond_this_machine():
    published = [
        port for service in compose()["services"].values() for port in service.get("ports", [])
    ]
    assert sorted(published) == [
        "127.0.0.1:15672:15672",
        "127.0.0.1:5432:5432",
        "127.0.0.1:5672:5672",
        "127.0.0.1:8000:8000",
        "127.0.0.1:9090:9090",
    ]
    hosts = {service.get("network_mode") for service in compose()["services"].values()}
    assert hosts == {None}


@pytest.mark.parametrize("server", SERVERS)
def test_what_a_server_keeps_outlives_its_container(server):
    file = compose()
    volume, folder = file["services"][server]["volumes"][0].split(":")
    assert volume in file["volumes"]
    assert folder.startswith("/var/lib/")


def test_a_password_of_ones_own_reaches_the_server_and_its_clients():
    own = {"RABBITMQ_PASSWORD": "broker7", "POSTGRES_PASSWORD": "store7"}
    services = compose(**own)["services"]
    assert services["rabbitmq"]["environment"]["RABBITMQ_DEFAULT_PASS"] == "broker7"
    assert services["postgres"]["environment"]["POSTGRES_PASSWORD"] == "store7"
    for service in SERVICES:
        told = services[service]["environment"]
        assert urlsplit(told["SOCRATIC_BROKER_URL"]).password == "broker7"
        if "SOCRATIC_STORE_URL" in told:
            assert urlsplit(told["SOCRATIC_STORE_URL"]).password == "store7"
    assert "socratic:socratic@" not in json.dumps(services)


def test_keys_of_model_providers_are_told_to_the_runner_alone_and_never_committed():
    services = compose()["services"]
    assert services["runner"]["env_file"] == [{"path": "keys.env", "required": False}]
    assert [name for name, service in services.items() if "env_file" in service] == ["runner"]
    assert "/keys.env" in (COMPOSE / ".gitignore").read_text().splitlines()


def test_the_example_of_an_env_file_names_every_variable_and_sets_none():
    text = (COMPOSE / "compose.yaml").read_text()
    used = VARIABLE.findall(text)
    assert all(default for _, default in used)
    example = (COMPOSE / ".env.example").read_text()
    named = dict(re.findall(r"^#([A-Z_]+)=(.*)$", example, re.MULTILINE))
    assert named.pop("COMPOSE_PROFILES") in compose()["services"][MONITORING]["profiles"]
    assert named.keys() == {name for name, _ in used}
    for name, default in used:
        assert named[name] == ("" if name.endswith("_PASSWORD") else default)
    assert re.findall(r"^[^#\s]", example, re.MULTILINE) == []
