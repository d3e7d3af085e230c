"""The probe a container's health check calls: 0 if ready, 1 if not, 2 for wrong use."""

import asyncio
import os
import subprocess
import sys

import pytest

from socratic_bench.hosting.http.readiness import Readiness
from socratic_bench.hosting.http.server import serving
from socratic_bench.hosting.metrics import Metrics
from socratic_bench.hosting.workers import health_app
from tests.waiting import waiting_for


async def probe(*arguments, **environment):
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "socratic_bench.hosting.http.probe",
        *arguments,
        env={**os.environ, **environment},
        stderr=asyncio.subprocess.PIPE,
    )
    async with waiting_for("the end of the probe"):
        _, said = await process.communicate()
    return process.returncode, said.decode()


async def test_it_tells_ready_from_not_ready_from_not_there():
    readiness = Readiness({})
    app = health_app(readiness, Metrics())
    async with serving(app, "127.0.0.1", 0, shutdown_timeout=1) as address:
        port = address.rpartition(":")[2]
        starting = await probe(SOCRATIC_HEALTH_PORT=port)
        alive = await probe(f"{address}/healthz")
        readiness.start()
        ready = await probe(SOCRATIC_HEALTH_PORT=port)
    gone = await probe(f"{address}/healthz")

    assert starting[0] == 1
    assert "503" in starting[1]
    assert "the service is starting" in starting[1]
    assert alive == (0, "")
    assert ready == (0, "")
    assert gone[0] == 1
    assert "refused" in gone[1]


@pytest.mark.parametrize(
    "arguments", [[], ["http://host/readyz"], ["ftp://host:1/"], ["http://a:1/", "http://b:1/"]]
)
async def test_wrong_use_is_2_and_says_what_is_right(arguments):
    code, said = await probe(*arguments, SOCRATIC_HEALTH_PORT="")
    assert code == 2
    assert "usage: python -m socratic_bench.hosting.http.probe" in said


def test_it_imports_nothing_that_takes_long():
    code = (
        "import sys, socratic_bench.hosting.http.probe; "
        "print([m for m in ('asyncio', 'http.client', 'ssl', 'pydantic', 'uvicorn')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
