# Stands in for the published RabbitMQ image: Debian's server, which reads the same variables.
FROM localhost/socratic-bench-debian
RUN apt-get update --quiet=2 \
 && apt-get install --quiet=2 --yes --no-install-recommends rabbitmq-server \
 && rabbitmq-plugins enable --offline rabbitmq_management \
 && rm -rf /var/lib/rabbitmq/mnesia
VOLUME /var/lib/rabbitmq
ENTRYPOINT ["rabbitmq-server"]
