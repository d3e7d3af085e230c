"""The reference tutors' texts: archetypes of tutoring, written by hand, not models.

Each archetype composes a reply from phrases of its own and words of the student. The archetypes
show the scale of the scores and test the benchmark itself; they never stand for a model.
"""
