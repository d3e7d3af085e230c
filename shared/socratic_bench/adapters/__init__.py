"""One folder per technology, the same file names in each. Only adapters import a driver."""
