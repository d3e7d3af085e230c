"""Planning: from a configuration to the requested runs of a benchmark."""
