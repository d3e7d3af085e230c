"""What the providers over HTTP share: connections, deadlines, event streams, keys, failures."""
