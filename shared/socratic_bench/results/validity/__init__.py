"""What the figures of a profile are worth: agreement with people's labels, and gaming."""
