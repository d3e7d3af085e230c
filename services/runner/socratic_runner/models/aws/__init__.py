"""The parts of the Bedrock client: access, shared connections, message format, failures."""
