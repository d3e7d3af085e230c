"""What a person at a terminal reads: sentences, progress and warnings."""
