"""Anthropic's Messages format."""
