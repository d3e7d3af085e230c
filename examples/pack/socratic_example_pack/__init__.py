"""An example of a scenario pack in a distribution of its own: one YAML file for each pack."""
