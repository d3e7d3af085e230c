"""Commands that score texts, and show and check what was scored."""
