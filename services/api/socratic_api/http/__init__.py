"""Rules for every request: keys, limits on bodies, errors, security headers."""
