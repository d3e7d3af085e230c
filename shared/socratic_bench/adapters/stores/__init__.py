"""Implementations of the store port, and what several of them share."""
