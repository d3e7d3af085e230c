"""Whether the models of an experiment pass the thresholds of a pipeline."""
