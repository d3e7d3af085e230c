"""Takes a stage, or one service of it, back to an earlier release, or forward to a later one.

    python -m socratic_aws.operations.rollback --stage prod --version 0.1.0-4f8e65e653
    python -m socratic_aws.operations.rollback --stage prod --list

The alias of each function moves to the version of that release, which has its code, its layer and
its settings. A service of tasks moves to the revision of its definition, which names its image and
its settings. Without `--service` the configuration of the release comes back too.

Each names its release in its environment, so there is no list of releases that could be wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from socratic_aws.operations import artifacts
from socratic_aws.operations.installation import FUNCTIONS, Installation, say
from socratic_aws.stacks.services import LIVE, RELEASE


class Deployed(Protocol):
    """What runs in several releases, one of which is live."""

    @property
    def name(self) -> str:
        """Its name in the account."""
        ...

    def live(self) -> str:
        """Return the live version."""
        ...

    def releases(self) -> Iterator[tuple[str, str]]:
        """Yield each release with its version, the oldest first."""
        ...

    def move(self, version: str) -> None:
        """Make a version the live one."""
        ...

    def wait(self) -> None:
        """Wait until the live version runs, and no other. Raises WaiterError."""
        ...


class DeployedFunction:
    """A function: its versions, and the alias that everything calls."""

    def __init__(self, installation: Installation, function: str) -> None:
        self._lambda = installation.client("lambda")
        self.name = installation.named(function)

    def live(self) -> str:
        """Return the version that the alias names."""
        return str(self._lambda.get_alias(FunctionName=self.name, Name=LIVE)["FunctionVersion"])

    def releases(self) -> Iterator[tuple[str, str]]:
        """Yield each release with its version, the oldest first."""
        pages = self._lambda.get_paginator("list_versions_by_function")
        for page in pages.paginate(FunctionName=self.name):
            for version in page["Versions"]:
                release = version.get("Environment", {}).get("Variables", {}).get(RELEASE)
                if release and version["Version"] != "$LATEST":
                    yield release, version["Version"]

    def move(self, version: str) -> None:
        """Let the alias name a version, with all of the traffic."""
        self._lambda.update_alias(
            FunctionName=self.name,
            Name=LIVE,
            FunctionVersion=version,
            RoutingConfig={"AdditionalVersionWeights": {}},
        )

    def wait(self) -> None:
        """Return at once: an alias moves at once."""


class DeployedTasks:
    """A service of tasks: the revisions of its definition."""

    def __init__(self, installation: Installation, service: str) -> None:
        self._ecs = installation.client("ecs")
        self._cluster = installation.prefix
        self.name = installation.named(service)

    def live(self) -> str:
        """Return the revision that the service runs."""
        found = self._ecs.describe_services(cluster=self._cluster, services=[self.name])
        return _revision(found["services"][0]["taskDefinition"])

    def releases(self) -> Iterator[tuple[str, str]]:
        """Yield each release with its revision, the oldest first."""
        pages = self._ecs.get_paginator("list_task_definitions")
        for page in pages.paginate(familyPrefix=self.name, status="ACTIVE", sort="ASC"):
            for arn in page["taskDefinitionArns"]:
                described = self._ecs.describe_task_definition(taskDefinition=arn)
                release = _release_of(described["taskDefinition"])
                if release is not None:
                    yield release, _revision(arn)

    def move(self, version: str) -> None:
        """Let the service replace its tasks by those of a revision."""
        self._ecs.update_service(
            cluster=self._cluster, service=self.name, taskDefinition=f"{self.name}:{version}"
        )

    def wait(self) -> None:
        """Wait until only tasks of the live revision run. Raises WaiterError after ten minutes."""
        self._ecs.get_waiter("services_stable").wait(cluster=self._cluster, services=[self.name])


def deployed(installation: Installation, service: str) -> list[Deployed]:
    """Return what runs a service; the curator's also the scheduler, which is always a function."""
    names = FUNCTIONS[service]
    if installation.compute() == "containers":
        functions = [DeployedFunction(installation, name) for name in names if name != service]
        return [DeployedTasks(installation, service), *functions]
    return [DeployedFunction(installation, name) for name in names]


def _revision(arn: str) -> str:
    return arn.rpartition(":")[2]


def _release_of(definition: dict[str, Any]) -> str | None:
    for container in definition["containerDefinitions"]:
        for variable in container.get("environment", ()):
            if variable["name"] == RELEASE:
                return str(variable["value"])
    return None


def main(arguments: Sequence[str] | None = None) -> None:
    """Move the aliases, or list the releases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", required=True)
    parser.add_argument("--service", choices=sorted(FUNCTIONS))
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--version")
    what.add_argument("--list", action="store_true")
    given = parser.parse_args(arguments)
    installation = Installation(given.stage)
    services = [given.service] if given.service else list(FUNCTIONS)
    parts = [part for service in services for part in deployed(installation, service)]
    if given.list:
        _list(parts)
        return
    _roll_back(parts, given.version)
    if given.service is None and not artifacts.restore(installation, given.version):
        say(f"No configuration was deployed with {given.version}: the present one stays.")


def _roll_back(parts: Sequence[Deployed], release: str) -> None:
    """Move all parts, or none where one has no version of the release."""
    found = {part.name: dict(part.releases()).get(release) for part in parts}
    missing = [name for name, version in found.items() if version is None]
    if missing:
        sys.exit(
            f"There is no release {release} of {', '.join(missing)}: --list shows those there are."
        )
    for part in parts:
        version, before = found[part.name], part.live()
        part.move(str(version))
        say(f"{part.name}: version {before} -> {version} ({release})")
    for part in parts:
        part.wait()


def _list(parts: Sequence[Deployed]) -> None:
    for part in parts:
        live = part.live()
        for release, version in part.releases():
            mark = "live" if version == live else ""
            say(f"{part.name:32} {version:>4}  {release:24} {mark}".rstrip())


if __name__ == "__main__":
    main()
