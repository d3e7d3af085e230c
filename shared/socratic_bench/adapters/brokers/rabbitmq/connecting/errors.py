"""The errors that a lost or missing connection to the server raises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aio_pika.exceptions import AMQPError
from pamqp.exceptions import PAMQPException

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
