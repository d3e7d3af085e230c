"""SQLite: a file that the processes of one machine share."""
