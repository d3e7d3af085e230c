"""Tables for people and, where a command prints it, the same as JSON."""
