"""Addresses that no process calls: the network link's, and a cloud's metadata.

They give out the credentials of the machine, so an author of a plan could ask for those.
"""

from __future__ import annotations

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
