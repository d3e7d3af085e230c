"""The role `SharedLimits`, in SQL."""
