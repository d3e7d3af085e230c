"""Each model's score over time, and the changes that chance does not explain."""
