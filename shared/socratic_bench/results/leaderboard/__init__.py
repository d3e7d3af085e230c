"""The leaderboard as a table: columns, comparison, CSV."""
