"""The connection to the server, which reconnects after each loss, and the errors of a lost one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, TypeVar

import structlog
from aio_pika import Connection
from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import AMQPError, ConnectionClosed, ProbableAuthenticationError
from aiormq.exceptions import ChannelAccessRefused, ConnectionNotAllowed
from pamqp import commands
from pamqp.exceptions import PAMQPException
from yarl import URL

from socratic_bench.adapters.brokers.declarations import broker_closed
from socratic_bench.concurrency.deadlines import finish_despite_cancel
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.errors import BrokerRefused, BrokerUnavailable, InvalidSettings

log = structlog.get_logger(__name__)

_ERRORS: Final = (AMQPError, PAMQPException, OSError, TimeoutError, RuntimeError)


def is_connection_error(error: BaseException | None) -> bool:
    """Tell whether the connection caused an error, rather than a mistake of ours.

    The driver raises RuntimeError for a call on a closed connection, and a plain Exception if the
    connection closes while it sends.
    """
    return isinstance(error, _ERRORS) or type(error) is Exception


@contextmanager
def ignoring_connection_errors() -> Iterator[None]:
    """Suppress connection errors around work that a lost connection makes unnecessary."""
    try:
        yield
    except Exception as error:
        if not is_connection_error(error):
            raise


# The driver has no words of a server that refuses a virtual host: it takes the refusal for a breach
# of the protocol. As a valid response it raises the refusal with its words.
commands.Connection.Open.valid_responses.append(commands.Connection.Close.name)

_NOT_ALLOWED: Final = (403, 530)
"""AMQP's codes of a connection that the server refuses to a user."""

_REMEDIES: Final = (
    ("limit", "raise the limit, or run fewer services and models"),
    ("not found", "create the virtual host, or correct the one in the address"),
    ("access to vhost", "give the user permissions in it, or correct the one in the address"),
    (
        "access to ",
        "let the user configure, write and read all queues and exchanges",
    ),
    ("Login was refused", "correct user and password of the address"),
    ("channel_max", "let a connection have a thousand channels"),
)
"""Parts of a server's words, and the remedy of the first that fits."""


def refusal_of(error: BaseException | None) -> str | None:
    """Return the words of a server that refuses something until somebody acts; else None."""
    match error:
        case ProbableAuthenticationError() | ChannelAccessRefused() | ConnectionNotAllowed():
            return _explained(error)
        case ConnectionClosed() if error.args and error.args[0] in _NOT_ALLOWED:
            return _explained(error)
    return None


def refused(place: str, words: str) -> BrokerRefused:
    """Return the error of a refusal at `place`, with the server's words and the remedy."""
    remedy = next((each for part, each in _REMEDIES if part in words), "ask its operator")
    return BrokerRefused(f"{place}: the broker refuses: {words.rstrip('.')}; {remedy}")


OLDEST_SERVER: Final = (3, 10)
"""The oldest RabbitMQ that the tests run on."""

CONNECT_SECONDS: Final = 10.0
"""Seconds that one attempt to connect may take."""

HANDSHAKE_SECONDS: Final = 1.0
"""Seconds that a cancelled attempt to connect goes on: the driver loses a connection that is
cancelled after its handshake, with tasks that nothing ends."""

PATIENCE: Final = 15.0
"""Seconds that a call waits for a connection, and again for the server's answer."""

CLOSE_SECONDS: Final = 5.0

HEARTBEAT_SECONDS: Final = 20
"""The interval of AMQP heartbeats; a peer that misses a few of them is gone."""

# D-044: a channel takes a new queue for the deleted one of the same name.
SETTLE_SECONDS: Final = 0.5
"""Seconds after which every channel of the server knows of a deleted queue."""

RESTORE_SECONDS: Final = 60.0
"""Seconds that declaring everything may take."""

Result = TypeVar("Result")

Restore = Callable[[AbstractConnection], Awaitable[None]]


class ReconnectingConnection:
    """One connection, kept up until it is closed. Callers that need a channel wait for it."""

    def __init__(self, url: str, *, restore: Restore | None = None) -> None:
        """`restore` declares, over each new connection, the queues that the server may have lost;
        callers get the connection afterwards.

        Raises InvalidSettings if `url` is not an AMQP address.
        """
        self._url, self.namespace = _checked(url)
        self.name = str(self._url.with_password(None).with_user(None).with_query(None))
        """The server's address for logs and errors, without user and password."""
        self._retry_policy = RetryPolicy(first_delay=0.1, longest_delay=5.0)
        self._restore = restore
        self._connection: AbstractConnection | None = None
        self._changed = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._trouble = "it has not answered yet"
        self._refusal: str | None = None
        """The words of a server that refuses the connection."""
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    async def connected(self) -> AbstractConnection:
        """Wait for the connection without a deadline. Raises BrokerClosed."""
        self._begin()
        while self._connection is None:
            await self._changed.wait()
            self.check_open()
        return self._connection

    async def another(self) -> AbstractConnection:
        """Open a separate connection to the same server; the caller closes it.

        Raises BrokerUnavailable and BrokerClosed.
        """
        # A cancelled attempt closes its connection; `in_time` would drop one that was just made.
        return await self._translated(connect(self._url))

    async def restore(self) -> None:
        """Declare again what the server has lost. Raises BrokerUnavailable and BrokerClosed."""
        connection = await self._connected_in_time()
        try:
            async with asyncio.timeout(RESTORE_SECONDS):
                await self._restore_over(connection)
        except Exception as error:
            if not is_connection_error(error):
                raise
            raise self._as_ours(error) from error

    async def server_version(self) -> tuple[int, ...]:
        """Return the numbers of RabbitMQ's version; none for a server of another make."""
        return _version_of(await self._connected_in_time())

    async def open_channel(self) -> AbstractChannel:
        """Open a channel with publisher confirms that raises for unroutable messages.

        Raises BrokerUnavailable after PATIENCE seconds, and BrokerClosed.
        """
        connection = await self._connected_in_time()
        channel = connection.channel(on_return_raises=True)
        try:
            await self.in_time(channel.initialize())
        except BaseException:
            await close_channel(channel)
            raise
        return channel

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[AbstractChannel]:
        """Open a channel and close it at the end; its unsettled messages return to their queues."""
        channel = await self.open_channel()
        try:
            yield channel
        finally:
            await close_channel(channel)

    async def in_time(self, answer: Awaitable[Result]) -> Result:
        """Await `answer` for at most PATIENCE seconds. A cancellation waits for it as well.

        Raises BrokerUnavailable for every connection error, and BrokerClosed.
        """
        # The driver closes a channel on which a call was cancelled; others may use it.
        return await self._translated(finish_despite_cancel(answer, patience=CLOSE_SECONDS))

    async def _translated(self, answer: Awaitable[Result]) -> Result:
        """Await `answer` for at most PATIENCE seconds, and raise the driver's errors as ours."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await answer
        except Exception as error:
            if not is_connection_error(error):
                raise
            raise self._as_ours(error) from error

    def _as_ours(self, error: Exception) -> BrokerUnavailable:
        """Return an error of the connection as ours. Raises BrokerClosed."""
        self.check_open()
        if words := refusal_of(error):
            return refused(self.name, words)
        if self._refusal is None and not isinstance(error, TimeoutError):
            self._trouble = _explained(error)
        return self._unavailable()

    async def close(self) -> None:
        """Close the connection; callers that wait for it get BrokerClosed."""
        self._closed = True
        self._changed.set()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper], timeout=CONNECT_SECONDS + CLOSE_SECONDS)

    async def _connected_in_time(self) -> AbstractConnection:
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._connected_unless_refused()
        except TimeoutError as error:
            raise self._unavailable() from error

    async def _connected_unless_refused(self) -> AbstractConnection:
        self._begin()
        while self._connection is None:
            if self._refusal is not None:
                raise refused(self.name, self._refusal)
            await self._changed.wait()
            self.check_open()
        return self._connection

    def _begin(self) -> None:
        self.check_open()
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep_up(), name="rabbitmq connection")

    async def _restore_over(self, connection: AbstractConnection) -> None:
        if self._restore is not None:
            await self._restore(connection)

    def _unavailable(self) -> BrokerUnavailable:
        if self._refusal is not None:
            return refused(self.name, self._refusal)
        return BrokerUnavailable(f"{self.name}: the broker cannot be used for now: {self._trouble}")

    def check_open(self) -> None:
        """Raise BrokerClosed after `close`."""
        if self._closed:
            raise broker_closed()

    async def _keep_up(self) -> None:
        attempt = 0
        # A driver may swallow the cancellation that `close` sends.
        while not self._closed:
            attempt += 1
            try:
                connection = await connect(self._url)
            except Exception as error:  # noqa: BLE001 - this task alone reconnects, after any error
                self._note(error)
                self._changed.set()  # a moment: callers do not wait for a server that refuses
                self._changed.clear()
                delay = self._retry_policy.delay(attempt)
                log.warning("no broker", broker=self.name, reason=self._trouble, attempt=attempt)
                await asyncio.sleep(delay)
                continue
            if attempt > 1:
                log.info("broker found", broker=self.name, attempt=attempt)
            attempt = 0
            self._refusal = None
            try:
                if not self._closed:
                    await self._until_lost(connection)
            finally:
                self._connection = None
                self._changed.clear()
                with ignoring_connection_errors():
                    async with asyncio.timeout(CLOSE_SECONDS):
                        await connection.close()

    def _note(self, error: BaseException) -> None:
        self._trouble, self._refusal = _explained(error), refusal_of(error)

    async def _until_lost(self, connection: AbstractConnection) -> None:
        lost = asyncio.Event()

        def on_close(_connection: object, error: BaseException | None) -> None:
            self._note(error or ConnectionError("the connection was closed"))
            lost.set()

        connection.close_callbacks.add(on_close)
        try:
            async with asyncio.timeout(RESTORE_SECONDS):
                await self._restore_over(connection)
        except Exception as error:
            if not is_connection_error(error):
                raise
            log.warning("not declared again", broker=self.name, reason=_explained(error))
        self._connection = connection
        self._changed.set()
        await lost.wait()
        if not self._closed:
            log.warning("broker lost", broker=self.name, reason=self._trouble)


async def connect(url: URL) -> AbstractConnection:
    """Connect to the server at `url` within CONNECT_SECONDS.

    Raises BrokerUnavailable if the server is older than OLDEST_SERVER: an upgrade helps, and a
    service goes on without a restart.

    A failed connection is closed here: the driver would leave that to the garbage collector, which
    may run in a thread without an event loop.
    """
    # D-050: the robust connection cannot know which deliveries a lost channel had.
    connection = Connection(url)
    try:
        # The driver's own deadline is `asyncio.wait_for`, which in Python 3.11 swallows a
        # cancellation that comes just when the connection is made.
        async with asyncio.timeout(CONNECT_SECONDS):
            await finish_despite_cancel(connection.connect(), patience=HANDSHAKE_SECONDS)
        _refuse_old(connection)
    except BaseException:
        await connection.close()
        raise
    return connection


def _version_of(connection: AbstractConnection) -> tuple[int, ...]:
    said = connection.transport.connection.server_properties if connection.transport else {}
    if str(said.get("product")) != "RabbitMQ":
        return ()
    return tuple(int(each) for each in str(said.get("version")).split(".") if each.isdecimal())


def _refuse_old(connection: AbstractConnection) -> None:
    """Raise BrokerUnavailable for an old RabbitMQ; a server of another make passes."""
    version = _version_of(connection)
    if version and version < OLDEST_SERVER:
        found, oldest = (".".join(map(str, each)) for each in (version, OLDEST_SERVER))
        raise BrokerUnavailable(
            f"the server is RabbitMQ {found}, which is too old; upgrade it to {oldest} or newer"
        )


def _checked(address: str) -> tuple[URL, str]:
    """Split an address into the driver's URL and our namespace."""
    try:
        url = URL(address)
    except ValueError:
        url = URL()
    if url.scheme not in {"amqp", "amqps"} or not url.host:
        raise InvalidSettings(
            "the address of the broker is not valid: give "
            "amqp://user:password@host:port/virtual-host"
        )
    namespace = url.query.get("namespace", "")
    url = url.without_query_params("namespace")
    if "heartbeat" not in url.query:
        url = url.update_query(heartbeat=HEARTBEAT_SECONDS)
    return url, namespace


def namespace_of(url: str) -> str:
    """Return the namespace in an address. Raises InvalidSettings for an invalid address."""
    return _checked(url)[1]


def _explained(error: BaseException) -> str:
    # The errors of a closed connection have the server's code before its words.
    words = error.args[-1] if isinstance(error, AMQPError) and error.args else ""
    return (words if isinstance(words, str) else "") or str(error) or type(error).__name__


async def close_channel(channel: AbstractChannel) -> None:
    """Close a channel, unless it was lost before."""
    with ignoring_connection_errors():
        async with asyncio.timeout(CLOSE_SECONDS):
            await finish_despite_cancel(channel.close(), patience=CLOSE_SECONDS)


async def lost_event(channel: AbstractChannel) -> asyncio.Event:
    """Return an event that is set when the channel becomes useless.

    The channel was closed, or the server cancelled a consumer on it because the queue was deleted
    or lost its leader.
    """
    lost = closed_event(channel)
    (await channel.get_underlay_channel()).on_consumer_cancel_callbacks.add(lambda _: lost.set())
    return lost


def closed_event(channel: AbstractChannel, *besides: asyncio.Event) -> asyncio.Event:
    """Return an event that is set, with `besides`, when the channel closes for any reason."""
    closed = asyncio.Event()

    def on_close(*_: object) -> None:
        for each in (closed, *besides):
            each.set()

    channel.close_callbacks.add(on_close)
    return closed
