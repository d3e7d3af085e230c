"""Handling requests of runs: sorting them, keeping runs in hand, telling what became of them."""
