"""Reads transcripts and answers that other tools wrote, for `socratic-bench score`."""
