"""Agreement of figures with people's labels, and how sure it is."""
