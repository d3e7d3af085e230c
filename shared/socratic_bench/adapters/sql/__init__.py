"""The SQL store: SQLAlchemy Core over SQLite by aiosqlite, or PostgreSQL by asyncpg."""
