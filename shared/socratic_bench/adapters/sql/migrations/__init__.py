"""The history of the schema, applied by `prepare`: one file per version, never changed later."""
