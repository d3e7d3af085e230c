"""The table: its client, its keys, its items and its transactions."""
