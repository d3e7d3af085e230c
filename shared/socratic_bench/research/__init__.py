"""The worth of scores: beside people's labels, and one profile beside another."""
