"""Entry points of the runner."""
