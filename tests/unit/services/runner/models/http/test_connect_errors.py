"""The reasons of a failed connection, in words for people."""

import asyncio
import errno
import inspect
import socket

import aiohttp
import pytest

from socratic_runner.models.http.connectors import why


async def failed(url: str) -> aiohttp.ClientError:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError) as failure:
            await session.get(url)
    return failure.value


async def test_a_refused_connection_is_called_that():
    with socket.socket() as holding:
        holding.bind(("127.0.0.1", 0))
        assert why(await failed(f"http://127.0.0.1:{holding.getsockname()[1]}/")) == (
            "connection refused"
        )


async def test_of_several_addresses_the_common_reason_is_told():
    key = aiohttp.client_reqrep.ConnectionKey("h", 80, False, True, None, None, None)
    refused, away = errno.ECONNREFUSED, errno.EHOSTUNREACH
    both = f"Multiple exceptions: [Errno {refused}] ('::1', 1), [Errno {refused}] ('127.0.0.1', 1)"
    error = aiohttp.ClientConnectorError(key, OSError(both))
    assert why(error) == "connection refused"
    mixed = OSError(f"Multiple exceptions: [Errno {refused}] a, [Errno {away}] b")
    assert f"[Errno {away}] b" in why(aiohttp.ClientConnectorError(key, mixed))
    error = aiohttp.ClientConnectorError(key, OSError(away, "Connect call failed"))
    assert why(error) == "no route to host"


async def test_a_name_that_is_not_known_and_anything_else_keep_their_words():
    key = aiohttp.client_reqrep.ConnectionKey("h", 80, False, True, None, None, None)
    unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    assert why(aiohttp.ClientConnectorDNSError(key, unknown)) == "name or service not known"
    assert why(aiohttp.ServerDisconnectedError()) == "Server disconnected"
    assert why(asyncio.IncompleteReadError(b"", 1)) == (
        "0 bytes read on a total of 1 expected bytes"
    )
    assert why(OSError()) == "OSError"


def test_aiohttp_has_the_private_members_that_the_connectors_override():
    """If this fails, read aiohttp's connector.py anew: connectors.py decides there which idle
    connection is used again, and with other members it would use all of them, or none.
    """
    connector = aiohttp.BaseConnector
    assert list(inspect.signature(connector._get).parameters) == ["self", "key", "traces"]
    release = list(inspect.signature(connector._release).parameters)
    assert release == ["self", "key", "protocol", "should_close"]
    assert "self._conns" in inspect.getsource(connector._get)
