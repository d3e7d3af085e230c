"""A PostgreSQL database for a test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.servers import postgresql


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """The address of an empty database."""
    async with postgresql.new_database() as url:
        yield url
