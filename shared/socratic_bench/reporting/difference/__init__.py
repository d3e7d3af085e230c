"""The difference of two models, and what it is worth."""
