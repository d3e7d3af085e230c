"""The brokers, in memory, on RabbitMQ and on SQS, and the halves of them that no server changes."""
