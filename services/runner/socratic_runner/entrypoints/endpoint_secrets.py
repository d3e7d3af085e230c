"""The endpoints of a runner: those of its setting, and those whose keys are secrets of AWS."""

from __future__ import annotations

import asyncio
import json

from pydantic import SecretStr

from socratic_bench.extras import require_package
from socratic_bench.providers.endpoints.endpoint import Endpoint
from socratic_bench.providers.endpoints.endpoint_list import read_endpoints
from socratic_runner.settings import RunnerSettings


async def all_endpoints(settings: RunnerSettings) -> tuple[Endpoint, ...]:
    """Return the endpoints of the setting, and those whose keys are secrets.

    Raises InvalidSettings, and MissingExtra where secrets are named and AWS's client is missing.
    """
    listed = read_endpoints(settings.endpoints)
    if not settings.endpoint_secrets:
        return listed
    require_package(
        "aiobotocore", needed_by="SOCRATIC_ENDPOINT_SECRETS", extra="socratic-ai-bench-runner[aws]"
    )
    from socratic_bench.adapters.aws.documents import (  # noqa: PLC0415 - only when asked for
        read_secret,
    )

    names = list(settings.endpoint_secrets)
    secrets = await asyncio.gather(*map(read_secret, settings.endpoint_secrets.values()))
    found = {name: json.loads(secret) for name, secret in zip(names, secrets, strict=True)}
    return (*listed, *read_endpoints(SecretStr(json.dumps(found))))
