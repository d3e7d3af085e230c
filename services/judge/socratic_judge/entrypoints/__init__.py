"""How the judge is started."""
