"""A service whose setting decides how it begins and ends."""

import asyncio
import logging
import sys
import warnings
from typing import Literal

import structlog
from pydantic import SecretStr

from socratic_bench.errors import StoreBroken
from socratic_bench.hosting.process import run_process
from socratic_bench.service_settings import ProcessSettings

log = structlog.get_logger(__name__)


class SmallSettings(ProcessSettings):
    does: Literal["waits", "hangs", "breaks", "fails", "talks"] = "waits"
    store_url: SecretStr = SecretStr("postgresql://me:hunter2@host/db")


async def serve(settings, stop):
    log.info("serving", store=settings.store_url.get_secret_value())
    match settings.does:
        case "waits":
            await stop.wait()
        case "hangs":
            await stop.wait()
            log.info("hanging")
            await asyncio.Event().wait()
        case "breaks":
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(break_down())
        case "fails":
            raise ZeroDivisionError("at postgresql://me:hunter2@host/db")
        case "talks":
            logging.getLogger("aio_pika").warning("lost %s", "amqp://me:hunter2@host/")
            logging.getLogger("uvicorn.error").info("everyday talk")
            log.debug("a detail", settings=repr(settings))
            warnings.warn("this will change", stacklevel=1)
            with structlog.contextvars.bound_contextvars(run_id="run-1"):
                log.info("about a run")


async def break_down():
    raise StoreBroken("the disk is full; free some space")


if __name__ == "__main__":
    sys.exit(run_process("small", SmallSettings, serve))
