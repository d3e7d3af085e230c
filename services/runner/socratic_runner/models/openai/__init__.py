"""OpenAI's Chat Completions format."""
