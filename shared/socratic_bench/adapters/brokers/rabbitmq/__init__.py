"""RabbitMQ, from 3.10: quorum queues, publisher confirms, a queue per group, delayed retries."""
