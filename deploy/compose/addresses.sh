#!/bin/sh
# Print the addresses of the running containers for the socratic-bench command in this shell:
#
#     eval "$(sh deploy/compose/addresses.sh)"
set -eu
compose() { docker compose --file "$(dirname "$0")/compose.yaml" "$@"; }

# address SETTING SERVER PORT: the runner's setting, with the address as seen from outside.
address() {
  inside=$(compose exec -T runner printenv "$1")
  published=$(compose port "$2" "$3")
  printf "export %s='%s'\n" "$1" "${inside%@*}@$published/${inside##*/}"
}

address SOCRATIC_BROKER_URL rabbitmq 5672
address SOCRATIC_STORE_URL postgres 5432
