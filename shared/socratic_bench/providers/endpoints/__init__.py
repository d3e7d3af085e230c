"""Endpoints that the operator lists, with the key that each may receive."""
