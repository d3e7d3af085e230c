"""Model providers without their clients: options, addresses, names of keys."""
