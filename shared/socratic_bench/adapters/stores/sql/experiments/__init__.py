"""The role `Experiments`, in SQL."""
