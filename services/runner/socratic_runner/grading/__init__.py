"""Grading: the calls that give responses their grades, on the path of every other call."""
