"""Exports: tables of an experiment as files for spreadsheets and programs."""
