"""The role `Aggregates`, in SQL."""
