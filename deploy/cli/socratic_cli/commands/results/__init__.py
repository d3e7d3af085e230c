"""Commands that score texts, and show and check results."""
