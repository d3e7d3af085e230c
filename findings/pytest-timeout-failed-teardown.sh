#!/usr/bin/env bash
# Guess: pytest-timeout's `timeout` covers a test with its setup and teardown, as its manual says of
#   the default (`func_only = false`); pytest's `faulthandler_timeout` covers them too.
# Versions: pytest 9.1.1, pytest-timeout 2.4.0, Python 3.11.
# Seen: both cancel their timers once a test has failed, in case somebody debugs it. The teardown of
#   a test that passed is ended; the same teardown of one that failed takes as long as it likes.
# Output:
#   passed: ended by the timeout of 1 s
#   failed: its teardown of 4 s went on to the end
# For users: a fixture that waits for a server needs a deadline of its own. Otherwise the first test
#   that fails because the server is away holds up the whole run.
set -euo pipefail
shopt -s inherit_errexit
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-pytest==9.1.1 pytest-timeout==2.4.0}"
timeout 600 "$folder/bin/pip" install --quiet "${packages[@]}"

cat > "$folder/test_teardown.py" << 'PYTHON'
import time

import pytest


@pytest.fixture
def slow_to_end():
    yield
    time.sleep(4)
    print("\nthe teardown went on to its end")


def test_that_passes(slow_to_end):
    pass


def test_that_fails(slow_to_end):
    assert not "a failure"
PYTHON

# said TEST: what pytest prints of it.
said() {
    (
        cd "$folder"
        timeout 60 bin/python -m pytest -p no:cacheprovider -rA --timeout 1 \
            -o faulthandler_timeout=1 -o faulthandler_exit_on_timeout=true \
            "test_teardown.py::$1" 2>&1 || true
    )
}

passing=$(said test_that_passes)
failing=$(said test_that_fails)
if [[ $passing != *"the teardown went on to its end"* ]]; then
    echo "passed: ended by the timeout of 1 s"
    ended=1
fi
if [[ $failing == *"the teardown went on to its end"* ]]; then
    echo "failed: its teardown of 4 s went on to the end"
    went_on=1
fi
if [[ ${ended:-0} != 1 || ${went_on:-0} != 1 ]]; then
    echo "The behaviour changed: see both outputs." >&2
    printf '%s\n' "$passing" "$failing" >&2
    exit 1
fi
