"""Addresses, and requests to AWS with deadlines."""
