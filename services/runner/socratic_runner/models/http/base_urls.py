"""Base URLs: where an API is, as a configuration says it."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from socratic_bench.domain.manifest import TutorModel
from socratic_bench.errors import InvalidInput

_SAFE: Final = re.compile(r"[\x21-\x7e]+")


def base_url(model: TutorModel, known: str | None) -> str:
    """Where `model` is reached, without a slash at its end; `known` where it does not say.

    Raises InvalidInput for an address that is none, or that holds more than an address. It never
    repeats the address, in which there may be a password.
    """
    url = known if model.base_url is None else model.base_url
    if url is None:
        raise InvalidInput(
            f"model {model.id}: {model.provider} models need a base_url, such as "
            "http://127.0.0.1:8080/v1"
        )
    problem = _problem(url)
    if problem is not None:
        raise InvalidInput(f"model {model.id}: base_url {problem}")
    return url.rstrip("/")


def is_own(model: TutorModel, known: str | None) -> bool:
    """Whether `model` is reached somewhere else than where its provider is known to be."""
    return model.base_url is not None and model.base_url.rstrip("/") != known


def origin(url: str) -> str:
    """The scheme, host and port of a base URL: what messages call it by."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _problem(url: str) -> str | None:
    if not url.startswith(("http://", "https://")):
        return "must begin with http:// or https://"
    if not _SAFE.fullmatch(url):
        return "holds white space or a character that has to be percent-encoded"
    if not _is_address(url):
        return "is no address: its host or its port is wrong"
    if "@" in urlsplit(url).netloc:
        return (
            "holds a user or a password; put the key into an environment variable, and name that "
            "with the option api_key_env"
        )
    if "?" in url or "#" in url:
        return "holds a query or a fragment; remove what begins with ? or #"
    return None


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
