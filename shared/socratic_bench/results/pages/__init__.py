"""The pages that a command writes: an experiment, the agreement of profiles, the validity."""
