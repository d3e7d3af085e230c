"""SQLite: a file for the processes of one machine."""
