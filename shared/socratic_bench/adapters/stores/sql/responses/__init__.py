"""The role `Responses`, in SQL."""
