"""Carries out a benchmark in this process, for the command and for notebooks."""
