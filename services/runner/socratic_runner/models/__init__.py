"""Model clients: one module per provider, imported only when one of its models is used."""
