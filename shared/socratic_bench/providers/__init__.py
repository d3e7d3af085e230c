"""What is known of model providers without speaking to them: options, addresses, keys by name."""
