"""Entry points of the judge."""
