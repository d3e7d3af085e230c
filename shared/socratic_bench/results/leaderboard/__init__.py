"""The leaderboard: its experiments, its figures, its columns, its text formats."""
