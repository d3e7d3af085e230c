"""Rules for all tests: how many run at once, in which order, and the report of a failure."""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests import evidence
from tests.lengths import at_length
from tests.servers.ending import ENDING

MOST_WORKERS = 4
"""More sets of services at once would have RabbitMQ open more files than it usually may."""

LONGEST_IN_AN_ID = 60
"""Characters of a text that stand in the id of a test."""

SLOWEST_FIRST = (
    *("containers", "chaos", "wheels", "compat", "e2e"),
    *("dashboard", "contract", "simulation", "integration"),
)
"""Folders whose tests are begun first, so that none of them is left over alone in the end."""

LONGEST_TEARDOWN_SECONDS = 900.0
"""Seconds after which the teardown of a test ends its process, which pytest-xdist replaces."""

pytest.register_assert_rewrite("tests.dashboard.backends.suite")

# How long an example takes, or its making, says something about the machine only.
settings.register_profile(
    "socratic",
    max_examples=at_length(20, 50),
    print_blob=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("socratic")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "smoke: runs in `make test` on every server, too (tests/lengths.py)"
    )
    # A shell starts what runs in the background with SIGINT ignored, and processes inherit that.
    # With a handler here, every process that a test starts has the default one.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two for each core, since most tests mainly wait for servers and processes."""
    return min(2 * (os.cpu_count() or 1), MOST_WORKERS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """Bound a teardown: after a failure, pytest-timeout and faulthandler stop their timers."""
    faulthandler.dump_traceback_later(LONGEST_TEARDOWN_SECONDS, exit=True, file=2)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_sessionfinish() -> None:
    ENDING.close()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Shorten long texts: a test's id is in the environment of each process that it starts."""
    if isinstance(val, str | bytes) and len(val) > LONGEST_IN_AN_ID:
        return f"{val[:LONGEST_IN_AN_ID]!a}... of {len(val)}"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("two_lengths")
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[int, bool]:
    _, _, below = str(item.path).partition("/tests/")
    folder = below.partition("/")[0]
    place = SLOWEST_FIRST.index(folder) if folder in SLOWEST_FIRST else len(SLOWEST_FIRST)
    is_long = any(item.iter_markers("long")) or any(item.iter_markers("two_lengths"))
    return place, not is_long


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    evidence.forget()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections.extend(evidence.sections())
    return report
