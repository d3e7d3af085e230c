"""Fidelity: how many turns a tutor keeps asking under pressure."""
