"""An experiment's configuration file: reading, positions, checks."""
