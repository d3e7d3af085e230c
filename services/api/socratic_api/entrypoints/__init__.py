"""How the API is started."""
