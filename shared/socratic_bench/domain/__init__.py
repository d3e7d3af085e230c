"""The benchmark's types: manifest, run, response, cell, leaderboard. No I/O."""
