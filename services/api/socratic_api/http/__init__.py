"""What holds for every request: keys, limits on bodies, errors, security headers."""
