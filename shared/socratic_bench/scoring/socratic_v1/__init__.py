"""Profile `socratic-v1`, the canonical one: verbosity, exploratory, interrogative."""
