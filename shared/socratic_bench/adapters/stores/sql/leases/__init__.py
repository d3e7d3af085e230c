"""The role `Leases`, in SQL."""
