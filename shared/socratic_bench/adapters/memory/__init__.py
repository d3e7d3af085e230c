"""The process itself as an adapter: nothing to install, nothing that outlives it."""
