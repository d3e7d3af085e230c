"""What Bedrock takes: access, a shared connection, the form of its messages, its failures."""
