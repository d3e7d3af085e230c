"""Carrying out a benchmark in this process, whoever asks for it."""
