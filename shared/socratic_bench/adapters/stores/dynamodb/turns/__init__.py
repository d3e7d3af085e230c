"""Turns of runs: their leases, their calls and the money for them."""
