"""An example of a model provider in a distribution of its own."""
