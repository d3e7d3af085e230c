"""What talking to a server that is not there, or not any more, may raise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aio_pika.exceptions import AMQPError
from pamqp.exceptions import PAMQPException

_FAULTS: Final = (AMQPError, PAMQPException, OSError, TimeoutError, RuntimeError)


def is_connection_error(error: BaseException | None) -> bool:
    """Whether an error is the connection's, and no mistake of ours.

    The driver raises RuntimeError for what is asked of a closed connection, and a plain Exception
    where it is closed while sending.
    """
    return isinstance(error, _FAULTS) or type(error) is Exception


@contextmanager
def ignoring_connection_errors() -> Iterator[None]:
    """For what need not be done where the connection is lost."""
    try:
        yield
    except Exception as error:
        if not is_connection_error(error):
            raise
