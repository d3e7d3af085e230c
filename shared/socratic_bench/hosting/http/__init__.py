"""A service's HTTP server, its health and its readiness."""
