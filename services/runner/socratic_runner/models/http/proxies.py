"""Finds the proxy for an address, and the addresses that need none, in the environment.

aiohttp would read the environment for each call, send credentials from a .netrc, and know neither
networks nor patterns in `no_proxy`.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from socratic_bench.errors import InvalidInput

_USUAL_PORTS: Final = {"http": 80, "https": 443}


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for an address; None for this machine's own.

    Raises InvalidInput for a proxy of another kind.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    named = getproxies_environment()
    proxy = named.get(parts.scheme) or named.get("all")
    if not proxy or is_this_machine(host):
        return None
    if _is_excepted(host, parts.port or _USUAL_PORTS[parts.scheme], named.get("no", "")):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if not proxy.startswith("http://"):
        raise InvalidInput(
            f"the environment variable {parts.scheme}_proxy must name a proxy that begins with "
            "http://; list hosts that need none in no_proxy"
        )
    return proxy


def shown(proxy: str) -> str:
    """Return the address of a proxy without its user and password."""
    scheme, _, rest = proxy.partition("://")
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"


def is_this_machine(host: str) -> bool:
    """Whether a host names the machine that asks."""
    address = _address(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def is_near(host: str) -> bool:
    """Whether a host is this machine or in a private network, by its address or a single name."""
    address = _address(host)
    if address is None:
        return is_this_machine(host) or "." not in host or host.endswith((".local", ".internal"))
    return address.is_loopback or address.is_private


def _is_excepted(host: str, port: int, listed: str) -> bool:
    entries = listed.replace(",", " ").replace(";", " ").lower().split()
    return any(_covers(entry, host, port) for entry in entries)


def _covers(entry: str, host: str, port: int) -> bool:
    """Whether an entry of `no_proxy` covers a host.

    An entry is `*`, a name, which covers the names below it, with or without `*.` or `.` before
    it; an address; a network; `<local>`; and each with a port.
    """
    if entry in ("*", "<local>"):
        return entry == "*" or "." not in host
    address = _address(host)
    if address is not None and "/" in entry:
        return _is_within(address, entry)
    name, told_port = _split(entry)
    if told_port not in ("", str(port)):
        return False
    if address is not None:
        return _address(name) == address
    name = name.removeprefix("*").strip(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _split(entry: str) -> tuple[str, str]:
    """Split an entry into a host and a port, which may be empty."""
    if entry.startswith("["):
        host, _, port = entry[1:].partition("]")
        return host, port.removeprefix(":")
    host, colon, port = entry.rpartition(":")
    return (host, port) if colon and ":" not in host else (entry, "")


def _is_within(address: IPv4Address | IPv6Address, network: str) -> bool:
    try:
        return address in ip_network(network, strict=False)
    except ValueError:
        return False


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None
