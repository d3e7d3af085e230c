"""Two models on the scenarios of both: how far apart, where, and whether by chance."""
