"""How a service is hosted as a process of its own: started, watched, drained, ended."""
