"""Commands about several profiles of one experiment."""
