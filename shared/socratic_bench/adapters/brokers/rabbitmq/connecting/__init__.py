"""The connection to the server: reconnecting, its errors, and queues without a leader."""
