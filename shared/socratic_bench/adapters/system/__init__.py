"""The operating system as an adapter."""
