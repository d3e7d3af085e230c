#!/bin/sh
# Called as `install_browser.sh BIN` before tests in a browser: installs what drives one, where one is found.
# BIN is the virtual environment's folder of programs. With CI=true a missing browser fails.
set -eu
cd "$(dirname "$0")/.."

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -n "$chromium" ]; then
  "$1/python" -m pip --disable-pip-version-check --quiet install --require-hashes \
    -r tests/dashboard/requirements.txt
elif [ "${CI:-}" = true ]; then
  echo "CI=true, and no Chromium was found for the dashboard's tests" >&2
  exit 1
else
  echo "no Chromium here: the dashboard's tests in a browser are skipped" >&2
fi
