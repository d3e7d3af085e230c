"""Endpoints that compare: two models on the same scenarios, and a model over time."""
