"""Socratic Bench on AWS: its packages, its stacks, and what deploys them."""
