"""Endpoints of runs: many of an experiment, and one of them with its turns."""
