"""The judge: scores recorded responses. It is pure: an event in, an event out, no store."""
