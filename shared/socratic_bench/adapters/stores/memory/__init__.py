"""The store in the memory of the process, one role a file; `store.py` joins the roles."""
