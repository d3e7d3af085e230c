"""The store port, one role a file; `store.py` puts the roles together."""
