"""Endpoints that the operator lists, and the keys that each may receive."""
