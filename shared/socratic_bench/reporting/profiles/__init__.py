"""Several profiles of one experiment: which it has, and how far two of them agree."""
