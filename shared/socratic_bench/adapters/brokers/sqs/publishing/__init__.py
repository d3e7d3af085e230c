"""Sending: the wire format, batches of requests, copies and claim checks."""
