"""The cells and scores of tables, kept as long as they do not change."""
