"""An example of a scorer profile in a distribution of its own."""
