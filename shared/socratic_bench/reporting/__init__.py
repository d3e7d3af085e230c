"""What the stored facts amount to: the leaderboard as JSON, and whether the cells are right."""
