"""The events between services: CloudEvents 1.0, one file each, and their codec."""
