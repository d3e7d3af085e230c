"""One folder per technology, those of brokers together. Only adapters import a driver."""
