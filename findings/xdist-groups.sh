#!/usr/bin/env bash
# Guess: a minor release of pytest leaves `--dist loadgroup` as it is: tests of one `xdist_group`
#   run in one worker.
# Versions: pytest-xdist 3.8.0 with pytest 9.1.1 and 9.2.0; Python 3.11.
# Seen: with pytest 9.2.0 the mark has no effect. No test fails and no warning appears; tests of one
#   group run in several workers at once.
# Output:
#   pytest==9.1.1 pytest-xdist==3.8.0: 12 tests of one group ran in 1 worker(s)
#   pytest==9.2.0 pytest-xdist==3.8.0: 12 tests of one group ran in 2 worker(s)
# For users: tests that share a server or a port by their group fail now and then after an upgrade
#   of pytest. Pin `pytest<9.2` until pytest-xdist has a release that knows it.
set -euo pipefail
shopt -s inherit_errexit
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"

cat > "$folder/test_group.py" << 'PYTHON'
import pytest


@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(12))
def test_in_a_worker(number, worker_id):
    print(f"\nworker {worker_id}")
PYTHON

# workers PYTEST PLUGIN: how many workers run the tests of the group.
workers() {
    timeout 600 "$folder/bin/pip" install --quiet "$@"
    (
        cd "$folder"
        timeout 120 bin/python -m pytest -p no:cacheprovider -n 2 --dist loadgroup -rP \
            test_group.py > said.txt
        grep -q '12 passed' said.txt
        grep -E '^worker gw' said.txt | sort -u | wc -l | tr -d ' '
    )
}

read -ra older <<< "pytest==9.1.1 pytest-xdist==3.8.0"
read -ra newer <<< "${PACKAGES:-pytest==9.2.0 pytest-xdist==3.8.0}"
before=$(workers "${older[@]}")
echo "${older[*]}: 12 tests of one group ran in $before worker(s)"
after=$(workers "${newer[@]}")
echo "${newer[*]}: 12 tests of one group ran in $after worker(s)"
if [[ $before != 1 || $after != 2 ]]; then
    echo "The behaviour changed: tests of one group run in one worker." >&2
    exit 1
fi
