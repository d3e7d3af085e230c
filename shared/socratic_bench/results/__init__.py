"""From cells to tables: leaderboard, comparison, trends, gate, export, and the check of cells."""
