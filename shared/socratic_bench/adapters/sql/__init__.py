"""The SQL store: SQLAlchemy Core over aiosqlite; the same statements compile for PostgreSQL."""
