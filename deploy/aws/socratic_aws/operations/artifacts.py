"""What a deployment brings besides stacks: the week's configuration, pages and images.

Each version of the configuration names the release that it was deployed with, so that a rollback
finds it again.

The tag of an image is the name of a release. It cannot be replaced, so an image that is there is
not built again.
"""

from __future__ import annotations

import base64
import json
import mimetypes
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from socratic_aws.operations.installation import ROOT, Installation, say
from socratic_aws.stacks.services import CONFIG, PORTS

RELEASE: Final = "release"


def put(installation: Installation, config: Path, release: str) -> None:
    """Make a file the configuration of the stage."""
    installation.client("s3").put_object(
        Bucket=installation.bucket,
        Key=CONFIG,
        Body=config.read_bytes(),
        Metadata={RELEASE: release},
    )
    say(f"Config:     s3://{installation.bucket}/{CONFIG}")


def restore(installation: Installation, release: str) -> bool:
    """Make the configuration of a release the current one again; tells whether there was one."""
    s3, bucket = installation.client("s3"), installation.bucket
    pages = s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=CONFIG)
    for version in (each for page in pages for each in page.get("Versions", ())):
        where = {"Bucket": bucket, "Key": CONFIG, "VersionId": version["VersionId"]}
        if s3.head_object(**where)["Metadata"].get(RELEASE) == release:
            if not version["IsLatest"]:
                s3.copy_object(
                    Bucket=bucket, Key=CONFIG, CopySource=where, MetadataDirective="COPY"
                )
            return True
    return False


_RENDER: Final = """
import json, sys
sys.path[:0] = [sys.argv[1], sys.argv[2] + "/python"]
from socratic_api.static_site import site_files
print(json.dumps({path: content.decode() for path, content in site_files().items()}))
"""
"""Runs apart from CDK's packages, on the packages that are deployed."""


def files_of(packages: Path) -> dict[str, str]:
    """Return the dashboard's files by their keys; none where no pages were built."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", _RENDER, packages / "api.zip", packages / "layer.zip"],
        capture_output=True,
        text=True,
        check=True,
    )
    files: dict[str, str] = json.loads(done.stdout)
    return files


def upload(installation: Installation, files: Mapping[str, str]) -> None:
    """Upload the files, and have CloudFront forget the earlier ones."""
    if not files:
        say("No pages are built: the dashboard is left as it is. Build them with `make dashboard`.")
        return
    site = installation.outputs("site")
    s3 = installation.client("s3")
    for key, content in files.items():
        kind = mimetypes.guess_type(key)[0] or "application/octet-stream"
        s3.put_object(
            Bucket=site["Bucket"],
            Key=key,
            Body=content.encode(),
            ContentType=f"{kind}; charset=utf-8",
            CacheControl="public, max-age=300",
        )
    installation.client("cloudfront").create_invalidation(
        DistributionId=site["DistributionId"],
        InvalidationBatch={
            "Paths": {"Quantity": 1, "Items": ["/*"]},
            "CallerReference": str(uuid.uuid4()),
        },
    )
    say(f"Dashboard:  {site['Address']} ({len(files)} files)")


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
        *("--file", "services/Dockerfile", "--target", "service", "--tag", tag, "."),
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
