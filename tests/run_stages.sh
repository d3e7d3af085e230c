#!/bin/sh
# All checks and tests, stage by stage. Called by `make test` with the virtual environment's bin folder.
#
# A stage that needs a big tool or a server runs where it is found and says so where it is not;
# with CI=true a missing one fails.
set -eu
bin="$1"
cd "$(dirname "$0")/.."
python="$bin/python"

say() { printf '\n== %s\n' "$1" >&2; }

say "format, lint, types, import boundaries"
make --no-print-directory check

say "tests"
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -n "$chromium" ]; then
  "$python" -m pip --disable-pip-version-check --quiet install --require-hashes \
    -r tests/dashboard/requirements.txt
elif [ "${CI:-}" = true ]; then
  echo "CI=true, and no Chromium was found for the dashboard's tests" >&2
  exit 1
else
  echo "no Chromium here: the dashboard's tests in a browser are skipped" >&2
fi
exec "$python" -m pytest
