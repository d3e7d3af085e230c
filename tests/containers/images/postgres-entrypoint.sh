#!/bin/sh
# Make the cluster and the database once, then serve them.
set -eu
export PGDATA=/var/lib/postgresql/data
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" > /tmp/password
  initdb --username "$POSTGRES_USER" --pwfile /tmp/password --auth-host scram-sha-256 \
    --auth-local trust --encoding UTF8 --locale C --no-sync
  rm /tmp/password
  printf 'host all all all scram-sha-256\n' >> "$PGDATA/pg_hba.conf"
  pg_ctl start --wait --options "-c listen_addresses= -c unix_socket_directories=/tmp"
  createdb --host /tmp --username "$POSTGRES_USER" "$POSTGRES_DB"
  pg_ctl stop --wait
fi
exec postgres -c listen_addresses='*' -c unix_socket_directories=/tmp
