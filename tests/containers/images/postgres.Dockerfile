# Stands in for the published PostgreSQL image: Debian's server, and the part of its entry point that we use.
FROM localhost/socratic-bench-debian
RUN apt-get update --quiet=2 \
 && apt-get install --quiet=2 --yes --no-install-recommends postgresql \
 && ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/ \
 && install --directory --owner postgres --mode 700 /var/lib/postgresql/data
COPY postgres-entrypoint.sh /usr/local/bin/
USER postgres
STOPSIGNAL SIGINT
VOLUME /var/lib/postgresql/data
ENTRYPOINT ["sh", "/usr/local/bin/postgres-entrypoint.sh"]
