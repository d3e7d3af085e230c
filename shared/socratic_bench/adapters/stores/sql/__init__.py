"""The SQL store: SQLAlchemy Core over SQLite in threads, or PostgreSQL by asyncpg."""
