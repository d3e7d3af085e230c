"""What was said in runs: transcripts, and records of responses for export."""
