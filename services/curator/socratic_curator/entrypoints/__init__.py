"""How the curator is started."""
