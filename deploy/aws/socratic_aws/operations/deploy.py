"""Deploys a stage, or one service of it.

    python -m socratic_aws.operations.deploy --stage prod [--service judge] [--config config.json]

The first deployment to a region of an account needs `--bootstrap`: it makes what CDK needs.
"""

from __future__ import annotations

import argparse
import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from socratic_aws.operations import configuration, dashboard
from socratic_aws.operations.installation import (
    FUNCTIONS,
    ROOT,
    Installation,
    cdk,
    context_of,
    say,
)

ALL: Final = ("Foundation", "Runner", "Judge", "Curator", "Api", "Site")


def main(arguments: Sequence[str] | None = None) -> None:
    """Deploy, and tell the release and the addresses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", required=True)
    parser.add_argument("--service", choices=sorted(FUNCTIONS))
    parser.add_argument("--packages", type=Path, default=ROOT / "build" / "aws")
    parser.add_argument("--config", type=Path)
    parser.add_argument("--bootstrap", action="store_true")
    parser.add_argument("--context", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args(arguments)

    installation = Installation(given.stage)
    packages = given.packages.resolve()
    release = json.loads((packages / "packages.json").read_text())["release"]
    context = {
        "stage": given.stage,
        "packages": str(packages),
        **context_of(given.context),
    }
    if given.bootstrap:
        cdk("bootstrap", context=context)
    # Without the others: a service refers to their resources by name.
    stacks = [given.service.capitalize(), "--exclusively"] if given.service else list(ALL)
    cdk("deploy", *stacks, "--require-approval", "never", context=context)
    _make_key(installation)
    if given.config:
        configuration.put(installation, given.config, release)
    if given.service in {None, "api"}:
        dashboard.upload(installation, dashboard.files_of(packages))
        say(f"API:        {installation.outputs('api')['Address']}")
    say(f"Release:    {release}")


def _make_key(installation: Installation) -> None:
    """Make the first key for writing; CloudFormation makes no encrypted parameters."""
    ssm = installation.client("ssm")
    name = f"/{installation.prefix}/api-keys"
    try:
        ssm.put_parameter(
            Name=name, Value=secrets.token_urlsafe(32), Type="SecureString", Overwrite=False
        )
    except ssm.exceptions.ParameterAlreadyExists:
        return
    say(f"API key:    aws ssm get-parameter --with-decryption --name {name}")


if __name__ == "__main__":
    main()
