"""Configurations of the command: the demo, and a template."""
