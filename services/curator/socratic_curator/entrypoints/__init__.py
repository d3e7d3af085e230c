"""Entry points of the curator."""
