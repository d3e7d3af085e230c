"""From a configuration to the plan of a benchmark."""
