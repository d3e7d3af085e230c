"""The store in the memory of the process; `store.py` joins its roles."""
