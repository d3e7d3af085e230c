"""The judge: scores recorded responses. Pure: an event in, an event out, no store."""
