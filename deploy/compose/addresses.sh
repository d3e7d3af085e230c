#!/bin/sh
# Print the addresses of the running containers for the socratic-bench command in this shell:
#
#     eval "$(sh deploy/compose/addresses.sh)"
set -eu
stack=compose.yaml
compose() { docker compose --file "$(dirname "$0")/$stack" "$@"; }

# told SETTING: the runner's setting.
told() { compose exec -T runner printenv "$1"; }

# address SETTING SERVER PORT: the runner's setting, with the address as seen from outside.
address() {
  inside=$(told "$1")
  published=$(compose port "$2" "$3")
  printf "export %s='%s'\n" "$1" "${inside%@*}@$published/${inside##*/}"
}

# emulated SETTING: the same, where the address stands in the option `endpoint`.
emulated() {
  inside=$(told "$1")
  published=$(compose port emulator 4566)
  printf "export %s='%s'\n" "$1" "${inside%//emulator:*}//$published&${inside#*endpoint=*&}"
}

broker=$(told SOCRATIC_BROKER_URL)
case "$broker" in
  sqs:*)
    stack=sqs.yaml
    emulated SOCRATIC_BROKER_URL
    emulated SOCRATIC_STORE_URL
    # The emulator accepts any credentials, but there must be some.
    sed -n "s/^\([A-Z_]*\)=\(.*\)$/export \1='\2'/p" "$(dirname "$0")/emulator.env"
    ;;
  *)
    address SOCRATIC_BROKER_URL rabbitmq 5672
    address SOCRATIC_STORE_URL postgres 5432
    ;;
esac
