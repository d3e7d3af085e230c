"""How the runner is started."""
