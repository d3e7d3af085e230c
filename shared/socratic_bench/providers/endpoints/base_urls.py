"""Base URLs of APIs in configurations: which are valid, and which are refused."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput
from socratic_bench.providers.endpoints.refused_addresses import REFUSED, is_refused_host

_SAFE: Final = re.compile(r"[\x21-\x7e]+")
_HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
_USUAL_PORTS: Final = {"http": 80, "https": 443}


def base_url(model: TutorModel, known: str | None) -> str:
    """Return the base URL of `model`, or else `known`, without a slash at its end.

    Raises InvalidInput for a malformed address, and for one with a password, a query or a fragment.
    The error never repeats the address.
    """
    url = known if model.base_url is None else model.base_url
    if url is None:
        raise InvalidInput(
            f"model {model.id}: {model.provider} models need a base_url, such as "
            "http://127.0.0.1:8080/v1"
        )
    problem = url_problem(url)
    if problem is not None:
        raise InvalidInput(f"model {model.id}: base_url {problem}")
    return url.rstrip("/")


def origin(url: str) -> str:
    """Return the scheme, host and port of a URL in one canonical spelling."""
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), (parts.hostname or "").rstrip(".")
    host = f"[{host}]" if ":" in host else host
    usual = parts.port is None or parts.port == _USUAL_PORTS.get(scheme)
    return f"{scheme}://{host}" if usual else f"{scheme}://{host}:{parts.port}"


def url_problem(url: str) -> str | None:
    """Return the problem of a URL without repeating the URL, or None."""
    if not url.startswith(("http://", "https://")):
        return "must begin with http:// or https://"
    if not _SAFE.fullmatch(url):
        return "holds white space or a character that needs percent-encoding"
    if "@" in url.partition("//")[2].partition("/")[0]:
        return (
            "holds a user or a password; keys belong into the environment, bound to their origins "
            "by SOCRATIC_ENDPOINTS"
        )
    if not _is_address(url):
        return "has a wrong host or port"
    if "?" in url or "#" in url:
        return "holds a query or a fragment; remove what begins with ? or #"
    refused = is_refused_host(urlsplit(url).hostname or "")
    return f"is {REFUSED}, which is never called" if refused else None


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(_HOST.fullmatch(parts.hostname or "")) and parts.port != 0
    except ValueError:
        return False
