"""One run: its conversation, its leases, its budget, its calls."""
