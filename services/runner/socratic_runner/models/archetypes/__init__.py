"""The reference tutors' texts: archetypes of tutoring, written by hand, no models.

Each archetype composes a reply from phrases of its own and words of the student. They are there
to show what the scores see, and to measure the benchmark itself: never to stand for a model.
"""
