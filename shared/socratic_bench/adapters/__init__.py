"""One folder per technology, with the same file names. Only adapters import a driver."""
