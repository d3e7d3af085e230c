"""Sums over runs: cells, their statistics, the leaderboard."""
