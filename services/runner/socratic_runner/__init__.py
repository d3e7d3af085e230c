"""The runner: puts scenarios to models and records what they answer."""
