"""The leases of a runner, their heartbeat, and what it stores of its calls."""
