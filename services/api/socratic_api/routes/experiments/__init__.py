"""Routes about experiments: progress, control and dead letters."""
