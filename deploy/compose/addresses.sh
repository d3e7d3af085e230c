#!/bin/sh
# Tell the socratic-bench command in this shell where the running containers are:
#
#     eval "$(sh deploy/compose/addresses.sh)"
set -eu
compose() { docker compose --file "$(dirname "$0")/compose.yaml" "$@"; }

# address SETTING SERVER PORT: what the runner is told, as it is reached from outside.
address() {
  inside=$(compose exec -T runner printenv "$1")
  published=$(compose port "$2" "$3")
  printf "export %s='%s'\n" "$1" "${inside%@*}@$published/${inside##*/}"
}

address SOCRATIC_BROKER_URL rabbitmq 5672
address SOCRATIC_STORE_URL postgres 5432
