"""The compose file starts the services safely, and tells each what it needs."""

import json
import re
from urllib.parse import urlsplit

import pytest
import yaml

from socratic_api.settings import ApiSettings
from socratic_bench.service_settings import load_settings
from tests.architecture.containers.container_files import (
    COMPOSE,
    SERVICES,
    SETTINGS,
    VARIABLE,
    compose,
    environment,
    listening_port,
    probed,
)

SERVERS = ("rabbitmq", "postgres")
MONITORING = "prometheus"


def seconds(duration: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(s|m)", duration).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


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


@pytest.mark.parametrize(
    ("own", "keys", "hosts", "readers"),
    [
        ({}, [], ("api",), False),
        (
            {"API_KEYS": "one,two", "PUBLIC_HOSTS": "bench.example.org", "READS_NEED_KEY": "true"},
            ["one", "two"],
            ("api", "bench.example.org"),
            True,
        ),
    ],
)
def test_keys_and_public_names_of_ones_own_reach_the_api(monkeypatch, own, keys, hosts, readers):
    for name, value in compose(**own)["services"]["api"]["environment"].items():
        monkeypatch.setenv(name, value)
    settings = load_settings(ApiSettings)
    assert [each.get_secret_value() for each in settings.api_keys] == keys
    assert settings.allowed_hosts == hosts
    assert settings.reads_need_key is readers


def test_keys_of_model_providers_are_told_to_the_runner_alone_and_never_committed():
    services = compose()["services"]
    assert services["runner"]["env_file"] == [{"path": "keys.env", "required": False}]
    assert [name for name, service in services.items() if "env_file" in service] == ["runner"]
    assert "/keys.env" in (COMPOSE / ".gitignore").read_text().splitlines()


def test_the_example_of_an_env_file_names_every_variable_and_sets_none():
    text = (COMPOSE / "compose.yaml").read_text() + (COMPOSE / "sqs.yaml").read_text()
    used = VARIABLE.findall(text)
    assert {name for name, default in used if not default} == {"API_KEYS", "PUBLIC_HOSTS"}
    example = (COMPOSE / ".env.example").read_text()
    named = dict(re.findall(r"^#([A-Z_]+)=(.*)$", example, re.MULTILINE))
    assert named.pop("COMPOSE_PROFILES") in compose()["services"][MONITORING]["profiles"]
    assert named.keys() == {name for name, _ in used}
    for name, default in used:
        assert named[name] == ("" if name.endswith("_PASSWORD") else default)
    assert re.findall(r"^[^#\s]", example, re.MULTILINE) == []
