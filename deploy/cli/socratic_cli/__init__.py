"""All services in one process over the in-process broker, and the `socratic-bench` command."""
