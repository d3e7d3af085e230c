"""Work that requests begin: planning and deletion, in tasks of the application."""
