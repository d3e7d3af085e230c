"""Commands that carry out a benchmark, or request one from services."""
