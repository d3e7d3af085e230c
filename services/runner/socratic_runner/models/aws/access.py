"""Checks the requirements of Bedrock: the library, a region, credentials.

The checks use no network. They import botocore only to read a profile.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput, MissingCredential
from socratic_bench.plugins import require_package

BEARER_VARIABLE: Final = "AWS_BEARER_TOKEN_BEDROCK"

_REGION: Final = re.compile(r"[a-z]{2,}(-[a-z0-9]+)+")
_REGION_VARIABLES: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_LEADS_TO_CREDENTIALS: Final = (
    "AWS_ACCESS_KEY_ID",
    BEARER_VARIABLE,
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CREDENTIAL_FILE",
    "BOTO_CONFIG",
)
_IN_PROFILE: Final = re.compile(r"aws_|role_|source_|credential_|web_identity_|sso_|login_")


def require_library(model: TutorModel) -> None:
    """Raise MissingExtra if aiobotocore is not installed."""
    require_package(
        "aiobotocore",
        needed_by=f"model {model.id}: Bedrock",
        extra="socratic-ai-bench[bedrock]",
    )


def region_of(model: TutorModel, chosen: str | None) -> str:
    """Return the region of `model`: `chosen`, else its ARN's, the environment's, the profile's.

    The ARN precedes the environment, since its resource exists in no other region. Raises
    InvalidInput for a missing or impossible region, MissingCredential for a missing profile.
    """
    region = chosen or _of_arn(model) or _of_environment()
    region = region or _profile(model, "region").get("region")
    if not region:
        raise InvalidInput(
            f"model {model.id}: its AWS region is unknown; set AWS_REGION in the environment, or "
            "the option region"
        )
    if not _REGION.fullmatch(region):
        raise InvalidInput(f"model {model.id}: {region!r} is not an AWS region such as us-east-1")
    return region


def _of_arn(model: TutorModel) -> str | None:
    parts = model.name_at_provider.split(":")
    return parts[3] if parts[0] == "arn" and len(parts) > 3 else None


def _of_environment() -> str | None:
    return next(filter(None, map(os.environ.get, _REGION_VARIABLES)), None)


def require_credentials(model: TutorModel, *, bearer: bool) -> None:
    """Raise MissingCredential if credentials are certainly missing or unusable.

    `bearer` allows a bearer token. Only the network can tell whether an instance has a role: then
    this check passes.
    """
    environment = os.environ
    if environment.get("AWS_ACCESS_KEY_ID") and not environment.get("AWS_SECRET_ACCESS_KEY"):
        raise MissingCredential(
            f"model {model.id}: AWS_ACCESS_KEY_ID is set but AWS_SECRET_ACCESS_KEY is not; set both"
        )
    leading = [each for each in _LEADS_TO_CREDENTIALS if bearer or each != BEARER_VARIABLE]
    named = any(map(environment.get, leading))
    may_have_a_role = environment.get("AWS_EC2_METADATA_DISABLED", "").lower() != "true"
    if (named or may_have_a_role) and not environment.get("AWS_PROFILE"):
        return
    profile = _profile(model, "credentials")
    if not (named or may_have_a_role or any(map(_IN_PROFILE.match, profile))):
        token = f"{BEARER_VARIABLE}, " if bearer else ""
        only = "" if bearer else f"; {BEARER_VARIABLE} is sent to AWS's own addresses only"
        raise MissingCredential(
            f"model {model.id}: there are no AWS credentials; set AWS_ACCESS_KEY_ID and "
            f"AWS_SECRET_ACCESS_KEY, {token}or AWS_PROFILE in the environment, not in the "
            f"configuration{only}"
        )


def _profile(model: TutorModel, wanted: str) -> Mapping[str, Any]:
    """Return the profile in use, which AWS_PROFILE may name; empty without one."""
    exceptions = import_module("botocore.exceptions")
    try:
        session = import_module("botocore.session").Session()
        profile: Mapping[str, Any] = session.get_scoped_config()
    except (exceptions.ProfileNotFound, exceptions.ConfigParseError) as error:
        message = f"model {model.id}: its AWS {wanted} cannot be looked up: {error}; AWS_PROFILE"
        message += " must name a profile of the AWS configuration, which must be readable"
        raise MissingCredential(message) from None
    return profile
