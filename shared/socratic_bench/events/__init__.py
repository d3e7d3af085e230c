"""The events between services: CloudEvents 1.0, in one file, and their codec."""
