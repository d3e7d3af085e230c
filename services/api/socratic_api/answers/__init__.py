"""Cached answers: encoded once for each revision of the store."""
