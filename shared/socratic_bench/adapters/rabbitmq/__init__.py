"""RabbitMQ, from 3.10: quorum queues, publisher confirms, lanes for groups, delayed retries."""
