"""An example of a page of the dashboard in a distribution of its own."""
