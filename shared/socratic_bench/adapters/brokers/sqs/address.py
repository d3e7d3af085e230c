"""The address of a broker on SQS, and what a declaration of its queues asks for.

A deployment asks for the same, without the driver.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, urlsplit

from socratic_bench.errors import InvalidSettings

EXAMPLE: Final = "sqs://eu-central-1/prod?bucket=my-claims"

_NAMESPACE: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
_REGION: Final = re.compile(r"[a-z]{2,}(-[a-z0-9]+)+")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_REGION_VARIABLES: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")


@dataclass(frozen=True, slots=True)
class Address:
    """Where the queues are."""

    region: str | None
    """None: the environment's or the profile's."""

    namespace: str
    """The beginning of every queue's and topic's name; empty for none."""

    endpoint: str | None
    """None: the environment's AWS_ENDPOINT_URL, or the region's own."""

    bucket: str | None
    """The S3 bucket for messages that are too large; None for none."""

    @property
    def name(self) -> str:
        """The address for logs and errors."""
        return f"sqs://{self.region or ''}/{self.namespace}"

    def named(self, name: str) -> str:
        """Return the name on the server of a queue or a topic."""
        return f"{self.namespace}-{name}" if self.namespace else name


def address_of(url: str) -> Address:
    """Read `sqs://region/namespace?endpoint=url&bucket=name`; every part may be missing.

    Raises InvalidSettings.
    """
    parts = urlsplit(url)
    if parts.scheme != "sqs":
        raise _wrong("it does not begin with sqs://")
    if parts.username is not None or parts.password is not None:
        raise _wrong("AWS credentials belong into the environment, not into the address")
    region = _checked("region", _REGION, parts.netloc)
    namespace = _checked("namespace", _NAMESPACE, parts.path.strip("/"))
    options = parse_qs(parts.query, keep_blank_values=True)
    unknown = options.keys() - {"endpoint", "bucket"}
    if unknown:
        raise _wrong(f"it has no option {min(unknown)!r}; there are endpoint and bucket")
    endpoint = options.get("endpoint", [""])[-1]
    if endpoint and urlsplit(endpoint).scheme not in {"http", "https"}:
        raise _wrong(f"its endpoint {endpoint!r} does not begin with http:// or https://")
    bucket = _checked("bucket", _BUCKET, options.get("bucket", [""])[-1])
    return Address(region or _region(), namespace or "", endpoint or None, bucket)


def _region() -> str | None:
    return next(filter(None, map(os.environ.get, _REGION_VARIABLES)), None)


def _checked(what: str, form: re.Pattern[str], value: str) -> str | None:
    if value and not form.fullmatch(value):
        raise _wrong(f"{value!r} is not a {what}")
    return value or None


def _wrong(problem: str) -> InvalidSettings:
    return InvalidSettings(f"not the address of a broker on SQS, such as {EXAMPLE}: {problem}")


RETENTION_SECONDS: Final = 14 * 24 * 3600
"""Seconds that SQS keeps a message: the most it can."""

LEAST_RETENTION_SECONDS: Final = 24 * 3600
"""Seconds that a queue should keep a message: runs of a large benchmark wait for hours."""

LAST_RESORT_RECEIVES: Final = 50
"""Deliveries after which SQS itself moves a message to the dead letters. Consumers do so long
before, unless none ever gets to look at it: a store may be away for hours."""

MOST_NAME_LENGTH: Final = 80
