"""Deploys a stage, or one service of it.

    python -m socratic_aws.operations.deploy --stage prod [--service judge] [--config config.json]
    python -m socratic_aws.operations.deploy --stage prod --context compute=containers

What runs the services stays what it is unless the context names it.

The first deployment to a region of an account needs `--bootstrap`: it makes what CDK needs.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from socratic_aws.operations import artifacts
from socratic_aws.operations.installation import (
    CONTAINER,
    FUNCTION,
    FUNCTIONS,
    ROOT,
    Installation,
    cdk,
    context_of,
    say,
)

BASE: Final = "Containers"
"""The stack that only containers need."""


def stacks_of(compute: str) -> list[str]:
    """Return the stacks of a stage, each after those that it needs."""
    base = [BASE] if compute == CONTAINER else []
    return ["Foundation", *base, "Runner", "Judge", "Curator", "Api", "Site"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Deploy, and tell the release and the addresses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", required=True)
    parser.add_argument("--service", choices=sorted(FUNCTIONS))
    parser.add_argument("--packages", type=Path, default=ROOT / "build" / "aws")
    parser.add_argument("--config", type=Path)
    parser.add_argument(
        "--images",
        help="images that are built, as registry/{service}:1.2, where no password is asked for",
    )
    parser.add_argument("--bootstrap", action="store_true")
    parser.add_argument("--context", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args(arguments)

    installation = Installation(given.stage)
    packages = given.packages.resolve()
    listed = json.loads((packages / "packages.json").read_text())
    release = listed["release"]
    context = {
        "stage": given.stage,
        "packages": str(packages),
        "compute": installation.compute(),
        **({"images": given.images} if given.images else {}),
        **context_of(given.context),
    }
    compute = context["compute"]
    if given.service and compute != installation.compute():
        sys.exit(f"compute={compute} is a change of the whole stage: leave --service out")
    if given.bootstrap:
        cdk("bootstrap", context=context)
    _make_key(installation)
    if compute == CONTAINER:
        if not given.service:
            # The registries have to be there before what starts the images.
            _deploy(["Foundation", BASE, "--exclusively"], context)
        if not context.get("images"):
            services = [given.service] if given.service else list(FUNCTIONS)
            artifacts.provide(installation, services, release, listed["architecture"])
    # Without the others: a service refers to their resources by name.
    alone = [given.service.capitalize(), "--exclusively"] if given.service else None
    _deploy(alone or stacks_of(compute), context)
    if compute == FUNCTION and not given.service and installation.has(BASE.lower()):
        installation.remove(BASE.lower())
        say("Removed:    network, cluster and images of the containers")
    if given.config:
        artifacts.put(installation, given.config, release)
    if given.service in {None, "api"}:
        artifacts.upload(installation, artifacts.files_of(packages))
        say(f"API:        {installation.outputs('api')['Address']}")
    say(f"Release:    {release}")


def _deploy(stacks: Sequence[str], context: Mapping[str, str]) -> None:
    cdk("deploy", *stacks, "--require-approval", "never", context=context)


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
