"""The brokers: in memory, on RabbitMQ and on SQS."""
