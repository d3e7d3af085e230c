"""The images of a release: built from the services' Dockerfile, pushed to the stage's registries.

A tag is the name of a release. It cannot be replaced, so an image that is there is not built again.
"""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from socratic_aws.operations.installation import ROOT, Installation, say
from socratic_aws.stacks.services import PORTS

EXTRAS: Final[Mapping[str, str]] = {
    "runner": "aws,bedrock,container,http",
    "judge": "aws,container",
    "curator": "aws,container",
    "api": "aws",
}
"""The extras of each image on AWS: no driver of RabbitMQ or PostgreSQL (D-233)."""

PLATFORMS: Final[Mapping[str, str]] = {"arm64": "linux/arm64", "x86_64": "linux/amd64"}


def build_command(service: str, tag: str, release: str, architecture: str) -> list[str]:
    """Return the command that builds the image of a service."""
    arguments = {
        "SERVICE": service,
        "PORT": PORTS[service],
        "EXTRAS": EXTRAS[service],
        "VERSION": release,
    }
    given = [
        word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")
    ]
    return [
        *("docker", "build", "--platform", PLATFORMS[architecture], *given),
        *("--file", "services/Dockerfile", "--tag", tag, "."),
    ]


def provide(
    installation: Installation, services: Sequence[str], release: str, architecture: str
) -> None:
    """Build and push the images of a release that the registries lack. Raises SystemExit."""
    missing = [name for name in services if not _is_there(installation, name, release)]
    if not missing:
        return
    registry = _sign_in(installation)
    for service in missing:
        tag = f"{registry}/{installation.named(service)}:{release}"
        _run(build_command(service, tag, release, architecture))
        _run(["docker", "push", tag])
        say(f"Image:      {tag}")


def _is_there(installation: Installation, service: str, release: str) -> bool:
    ecr = installation.client("ecr")
    try:
        ecr.describe_images(
            repositoryName=installation.named(service), imageIds=[{"imageTag": release}]
        )
    except ecr.exceptions.ImageNotFoundException:
        return False
    return True


def _sign_in(installation: Installation) -> str:
    """Let the engine push to the account's registry; returns the registry's address."""
    [given] = installation.client("ecr").get_authorization_token()["authorizationData"]
    user, _, password = base64.b64decode(given["authorizationToken"]).decode().partition(":")
    registry = str(given["proxyEndpoint"]).removeprefix("https://")
    _run(["docker", "login", "--username", user, "--password-stdin", registry], password)
    return registry


def _run(command: Sequence[str], given: str | None = None) -> None:
    try:
        done = subprocess.run(command, cwd=ROOT, input=given, text=True, check=False)
    except OSError as error:
        sys.exit(f"{command[0]} failed: {error}. Or name images that are built: --images")
    if done.returncode:
        sys.exit(done.returncode)
