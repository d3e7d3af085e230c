"""PostgreSQL: a server for processes on several machines."""
