"""Output for a person at a terminal: sentences, progress and warnings."""
