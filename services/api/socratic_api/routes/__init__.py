"""One file per resource: each gives its endpoints, given what they need."""
