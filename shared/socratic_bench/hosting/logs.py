"""Structured logs on standard error: one JSON object a line, from libraries too.

Addresses in a line have no passwords.
"""

from __future__ import annotations

import logging
import re
import sys
from typing import Final

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

LOGGED_BY_ADAPTERS: Final = ("aiormq",)
"""Libraries whose errors their adapter logs, without tracebacks."""

LOGGED_AT_DEBUG: Final = (
    "aio_pika",
    "aiobotocore",
    "alembic",
    "asyncio",
    "botocore",
    "sqlalchemy",
    "uvicorn",
)
"""Libraries whose info lines appear only at level `debug`."""

_CREDENTIALS: Final = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]*://[^\s:/@]*):\S*@", re.IGNORECASE)
_IN_QUERY: Final = re.compile(r"(?P<name>[?&](?:password|sslpassword)=)[^\s&'\"]*", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """Return `text` without the passwords in its addresses."""
    return _IN_QUERY.sub(r"\g<name>***", _CREDENTIALS.sub(r"\g<before>@", text))


def configure_logs(level: str, service: str) -> None:
    """Write logs of `level` and above, from the standard library's loggers too.

    A library's info lines appear only at level `debug`. Every line names `service`.
    """

    def name_service(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event["service"] = service
        return event

    everyone: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        name_service,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _hide_passwords,
    ]
    as_json = structlog.processors.JSONRenderer()
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*everyone, as_json],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *everyone],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, as_json],
        )
    )
    logging.basicConfig(handlers=[handler], level=number, force=True)
    logging.captureWarnings(capture=True)
    for library in LOGGED_AT_DEBUG:
        quietest = logging.DEBUG if level == "debug" else logging.WARNING
        logging.getLogger(library).setLevel(max(number, quietest))
    for library in LOGGED_BY_ADAPTERS:
        logging.getLogger(library).setLevel(number if level == "debug" else logging.CRITICAL)


def _hide_passwords(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    for key, value in event.items():
        if isinstance(value, str) and "://" in value:
            event[key] = without_passwords(value)
    return event
