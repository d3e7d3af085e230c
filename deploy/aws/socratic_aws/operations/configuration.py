"""The configuration that is planned each week, in a bucket that keeps its versions.

Each version names the release that it was deployed with, so that a rollback finds it again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from socratic_aws.operations.installation import Installation, say
from socratic_aws.stacks.services import CONFIG

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
