"""The history of the schema, which `prepare` applies: one unchanging file per version."""
