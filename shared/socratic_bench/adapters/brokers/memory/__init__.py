"""The broker in memory, for one process and tests."""
