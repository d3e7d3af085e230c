"""Parquet: a writer for flat tables, a row group at a time, without a library."""
