"""The stacks of a stage."""
