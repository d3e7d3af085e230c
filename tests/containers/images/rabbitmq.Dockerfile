# Stands in for the published RabbitMQ image: Debian's server, which reads the same variables.
FROM localhost/socratic-bench-debian
RUN apt-get update --quiet=2 \
 && apt-get install --quiet=2 --yes --no-install-recommends rabbitmq-server \
 && rabbitmq-plugins enable --offline rabbitmq_management \
 && rm -rf /var/lib/rabbitmq/mnesia \
 && chown -R rabbitmq: /var/lib/rabbitmq /var/log/rabbitmq /etc/rabbitmq
ENV RABBITMQ_LOGS=-
USER rabbitmq
VOLUME /var/lib/rabbitmq
# Not the one in PATH, which stays as process 1 and passes no signal on.
ENTRYPOINT ["/usr/lib/rabbitmq/bin/rabbitmq-server"]
