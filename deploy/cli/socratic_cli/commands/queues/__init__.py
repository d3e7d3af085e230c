"""Commands that work on the queues of the services."""
