"""The packages of the functions, built without a container."""
