"""The report of an experiment: one page with its figures, to share, attach or cite."""
