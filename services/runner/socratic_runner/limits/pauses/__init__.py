"""Pauses of a model: a breaker that opens, a push-back from the model's server."""
