"""Model clients: `registry` names the module of each provider and imports it at its first use."""
