#!/bin/sh
# Called by `make test` as `run_stages.sh short BIN`, or with `long` for LENGTH=long; BIN is the
# virtual environment's folder of programs.
#
# A stage that needs a big tool or a server runs where it is found and says so where it is not;
# with CI=true a missing one fails.
set -eu
length="$1"
bin="$2"
cd "$(dirname "$0")/.."
python="$bin/python"

# Tests start some hundred processes of this project: each would compile it anew.
unset PYTHONDONTWRITEBYTECODE

# Each test makes a database or two, and a disk takes longer to keep one than the test to use it.
if [ -z "${PYTEST_DEBUG_TEMPROOT:-}" ] && [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] &&
  [ "$(df --output=avail -k /dev/shm | tail -n 1)" -gt 2000000 ]; then
  export PYTEST_DEBUG_TEMPROOT=/dev/shm
fi

say() { printf '\n== %s\n' "$1" >&2; }

case "$length" in
  short) chosen="not long" ;;
  long) chosen="" ;;
  *)
    echo "usage: run_stages.sh short|long BIN" >&2
    exit 2
    ;;
esac

say "the dashboard's pages"
required=""
[ "${CI:-}" != true ] || required=--required
# shellcheck disable=SC2086 # no word where nothing is required
"$python" services/api/dashboard/build.py $required

say "format, lint, types, import boundaries; of the dashboard's sources too"
# mypy leaves a core idle, and each process of tests would compile all of them anew.
"$python" -m pytest --collect-only --quiet --ignore=tests/aws >/dev/null 2>&1 &
compiling=$!
make --no-print-directory check || { kill "$compiling"; exit 1; }
wait "$compiling" || true # the tests themselves tell why

say "tests"
export SOCRATIC_TEST_LENGTH="$length"
exec "$python" -m tests.verdict -m "$chosen" --ignore=tests/aws \
  --numprocesses=auto --dist=loadgroup --durations=20 --durations-min=1
