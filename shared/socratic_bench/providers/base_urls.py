"""Base URLs of APIs in configurations: which are valid, and which are refused.

They give out the credentials of the machine, so an author of a plan could ask for those.
"""

from __future__ import annotations

import re
import socket
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final
from urllib.parse import urlsplit

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput

Address = IPv4Address | IPv6Address

REFUSED: Final = "an address of this network link or of a cloud's metadata"

_REFUSED: Final[tuple[IPv4Network | IPv6Network, ...]] = tuple(
    map(
        ip_network,
        (
            "169.254.0.0/16",  # the link; metadata of AWS, Azure, Google and others
            "fe80::/10",  # the link
            "fd00:ec2::/32",  # AWS
            "fd20:ce::254/128",  # Google
            "100.100.100.200/32",  # Alibaba
            "168.63.129.16/32",  # Azure
            "192.0.0.192/32",  # Oracle
        ),
    )
)
_IPV4_WITHIN: Final = tuple(map(IPv6Network, ("::/96", "64:ff9b::/96")))
"""IPv6 networks whose last four bytes are an IPv4 address."""


def is_refused(address: str) -> bool:
    """Whether no process may call this numeric address, in any spelling."""
    parsed = ip_address(address.partition("%")[0])
    return any(
        each.version == network.version and each in network
        for each in _meanings(parsed)
        for network in _REFUSED
    )


def is_refused_host(host: str) -> bool:
    """Whether the host of a URL is a refused address. A host name resolves only on connecting."""
    try:
        return is_refused(host)
    except ValueError:
        pass
    try:
        # The C library also reads 0xA9FEA9FE, 2852039166 and 169.254.43518 as addresses.
        return is_refused(socket.inet_ntoa(socket.inet_aton(host)))
    except (OSError, UnicodeError):
        return False


def _meanings(address: Address) -> list[Address]:
    """Return the address, and the IPv4 address that it wraps."""
    if isinstance(address, IPv4Address):
        return [address]
    wrapped = [address.ipv4_mapped, address.sixtofour]
    if any(address in network for network in _IPV4_WITHIN):
        wrapped.append(IPv4Address(address.packed[-4:]))
    return [address, *(each for each in wrapped if each is not None)]


_SAFE: Final = re.compile(r"[\x21-\x7e]+")
_HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
_USUAL_PORTS: Final = {"http": 80, "https": 443}


def base_url(model: TutorModel, known: str | None, *, takes_query: bool = False) -> str:
    """Return the base URL of `model`, or else `known`, without a slash at the end of its path.

    With `takes_query` it may have one, such as `?api-version=2024-10-21`. Raises InvalidInput for a
    malformed address, and for one with a password, another query or a fragment. The error never
    repeats the address.
    """
    url = known if model.base_url is None else model.base_url
    if url is None:
        raise InvalidInput(
            f"model {model.id}: {model.provider} models need a base_url, such as "
            "http://127.0.0.1:8080/v1"
        )
    address, mark, query = url.partition("?") if takes_query else (url, "", "")
    problem = url_problem(address) or (query_problem(query) if mark else None)
    if problem is not None:
        raise InvalidInput(f"model {model.id}: base_url {problem}")
    return f"{address.rstrip('/')}{mark}{query}"


def with_path(url: str, path: str) -> str:
    """Return the address of a call: the base URL with a further path before its query."""
    address, mark, query = url.partition("?")
    return f"{address}{path}{mark}{query}"


_PAIR: Final = re.compile(r"([A-Za-z][A-Za-z0-9_.-]{0,40})=([A-Za-z0-9_.-]{1,60})")
_OF_A_KEY: Final = re.compile(
    r"key|token|secret|pass|pwd|auth|sig|code|cred|jwt|session", re.IGNORECASE
)


def query_problem(query: str) -> str | None:
    """Return the problem of the query of a base URL without repeating it, or None."""
    for pair in query.split("&"):
        found = _PAIR.fullmatch(pair)
        if found is None:
            return "holds a query or a fragment that is not like ?api-version=2024-10-21"
        if _OF_A_KEY.search(found[1]):
            return (
                "may hold a key in its query, and would be stored: put the key into the "
                "environment, and name its header in options: {key_header: api-key}"
            )
    return None


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
