"""Entry points of the API."""
