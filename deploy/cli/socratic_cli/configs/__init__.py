"""Configurations that come with the command: the demo, and one to start from."""
