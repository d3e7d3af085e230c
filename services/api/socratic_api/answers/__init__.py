"""Answers at hand: encoded once for each revision of the store."""
