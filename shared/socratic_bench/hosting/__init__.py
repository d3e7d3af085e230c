"""The host of a service's process: start, health, drain and end."""
