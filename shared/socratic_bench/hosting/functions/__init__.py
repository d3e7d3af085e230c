"""Parts of a function that AWS Lambda calls: what outlives an invocation, queues, HTTP, metrics."""
