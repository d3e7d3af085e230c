"""The names of queues and exchanges, their declaration, and the watch over them."""
