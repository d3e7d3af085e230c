"""The words of the benchmark as types: manifest, run, response, cell, leaderboard. No I/O."""
