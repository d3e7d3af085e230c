"""Shared parts of HTTP clients: connections, deadlines, event streams, keys, failures."""
