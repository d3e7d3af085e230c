"""The backend of PostgreSQL."""

from __future__ import annotations

from socratic_bench.adapters.stores.sql.backend import Backend
from socratic_bench.adapters.stores.sql.postgresql import engine, errors
from socratic_bench.adapters.stores.sql.postgresql.address import parse
from socratic_bench.adapters.stores.sql.postgresql.dialect import PostgreSQLDialect


def postgresql_backend(url: str) -> Backend:
    """Return the backend of `postgresql://…`. Raises InvalidSettings without a database's name."""
    address = parse(url)
    return Backend(
        name=address.name,
        dialect=PostgreSQLDialect(),
        create=lambda: engine.create_database(address),
        migrate=lambda work: engine.migrate(address, work),
        writing=lambda: engine.writing_engine(address),
        writers=engine.WRITERS,
        reading=lambda: engine.reading_engine(address),
        readers=engine.READERS,
        errors=errors.ERRORS,
        explain=lambda error: errors.explain(error, address.name),
    )
