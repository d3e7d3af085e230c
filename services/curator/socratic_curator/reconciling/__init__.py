"""Healing experiments: a reconciler compares the plan with the store, and requests what is lost."""
