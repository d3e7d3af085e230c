"""Takes a stage, or one service of it, back to an earlier release, or forward to a later one.

    python -m socratic_aws.operations.rollback --stage prod --version 0.1.0-4f8e65e653
    python -m socratic_aws.operations.rollback --stage prod --list

The alias of each function moves to the version of that release, which has its code, its layer and
its settings. A service of tasks moves to the revision of its definition, which names its image and
its settings. Without `--service` the configuration of the release comes back too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from socratic_aws.operations import configuration
from socratic_aws.operations.installation import FUNCTIONS, Installation, say
from socratic_aws.operations.releases import Deployed, deployed


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
    if given.service is None and not configuration.restore(installation, given.version):
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
