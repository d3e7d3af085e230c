"""The store port, one role a file; `store.py` joins the roles."""
