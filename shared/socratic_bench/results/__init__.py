"""Reports on stored facts: the leaderboard, status and costs, and the check of cells."""
