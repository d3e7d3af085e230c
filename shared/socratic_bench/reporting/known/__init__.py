"""Figures of unchanged experiments, kept from one answer to the next."""
