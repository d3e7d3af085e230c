"""Publishing with confirms: the wire format and the routes."""
