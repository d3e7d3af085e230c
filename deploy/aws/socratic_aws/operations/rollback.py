"""Takes a stage, or one service of it, back to an earlier release, or forward to a later one.

    python -m socratic_aws.operations.rollback --stage prod --version 0.1.0-4f8e65e653
    python -m socratic_aws.operations.rollback --stage prod --list

The alias of each function moves to the version of that release, which has its code, its layer and
its settings. Without `--service` the configuration of the release comes back too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from socratic_aws.operations import configuration
from socratic_aws.operations.installation import FUNCTIONS, Installation, say
from socratic_aws.stacks.services import LIVE, RELEASE


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
    functions = [name for service in services for name in FUNCTIONS[service]]
    if given.list:
        _list(installation, functions)
        return
    _roll_back(installation, functions, given.version)
    if given.service is None and not configuration.restore(installation, given.version):
        say(f"No configuration was deployed with {given.version}: the present one stays.")


def _roll_back(installation: Installation, functions: Sequence[str], release: str) -> None:
    """Move all aliases, or none where one function has no version of the release."""
    found = {name: dict(_releases(installation, name)).get(release) for name in functions}
    missing = [name for name, version in found.items() if version is None]
    if missing:
        sys.exit(
            f"There is no release {release} of {', '.join(missing)}: --list shows those there are."
        )
    lambda_ = installation.client("lambda")
    for name, version in found.items():
        function = installation.function(name)
        before = lambda_.get_alias(FunctionName=function, Name=LIVE)["FunctionVersion"]
        lambda_.update_alias(
            FunctionName=function,
            Name=LIVE,
            FunctionVersion=version,
            RoutingConfig={"AdditionalVersionWeights": {}},
        )
        say(f"{function}: version {before} -> {version} ({release})")


def _list(installation: Installation, functions: Sequence[str]) -> None:
    lambda_ = installation.client("lambda")
    for name in functions:
        function = installation.function(name)
        live = lambda_.get_alias(FunctionName=function, Name=LIVE)["FunctionVersion"]
        for release, version in _releases(installation, name):
            mark = "live" if version == live else ""
            say(f"{function:32} {version:>4}  {release:24} {mark}".rstrip())


def _releases(installation: Installation, name: str) -> Iterator[tuple[str, str]]:
    """Yield each release of a function with its version, the oldest first."""
    pages = installation.client("lambda").get_paginator("list_versions_by_function")
    for page in pages.paginate(FunctionName=installation.function(name)):
        for version in page["Versions"]:
            release = version.get("Environment", {}).get("Variables", {}).get(RELEASE)
            if release and version["Version"] != "$LATEST":
                yield release, version["Version"]


if __name__ == "__main__":
    main()
