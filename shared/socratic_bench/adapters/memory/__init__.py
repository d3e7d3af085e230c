"""The store in the memory of the process, whose contents end with it."""
