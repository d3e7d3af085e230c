"""Deterministic scoring of a tutor's responses. No I/O, no model, no clock."""
