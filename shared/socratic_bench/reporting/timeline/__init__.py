"""Scores over time: points, what changed between them, and trends."""
