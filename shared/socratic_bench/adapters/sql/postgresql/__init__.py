"""PostgreSQL: a server that processes on many machines share."""
