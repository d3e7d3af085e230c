"""How hard models are driven: concurrency, rates, pauses, retries, and what runners share."""
