"""Breakers and pauses, which keep a runner from calling a model."""
