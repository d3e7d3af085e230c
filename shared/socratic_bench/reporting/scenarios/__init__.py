"""Scenarios: the scores of models on each, and what each says about the models."""
