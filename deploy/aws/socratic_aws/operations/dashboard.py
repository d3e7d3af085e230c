"""The files of the dashboard, as the API's package has them, in the bucket behind CloudFront."""

from __future__ import annotations

import json
import mimetypes
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from socratic_aws.operations.installation import Installation, say

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
