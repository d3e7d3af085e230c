#!/usr/bin/env bash
# Guess: a constraint holds for the package that it names. One with a hash changes nothing for
#   other packages.
# Versions: pip 26.3, uv 0.13.9; Python 3.11.
# Seen: one hash in a constraints file makes pip demand a version and a hash of everything, even
#   where the constrained package is not installed at all. pip cannot hash a folder, so it refuses
#   a checkout. uv takes both with the same file, and checks the hash of what it names.
# Output:
#   pip, six: ERROR: In --require-hashes mode, all requirements must have their versions pinned
#   with ==. These do not:
#   pip, ./lesson: ERROR: Can't verify hashes for these file:// requirements because they point to
#   directories:
#   uv, six and ./lesson: installed
# For users: `pip install ./project -c constraints.txt` cannot work if the file has hashes. Install
#   the file with `-r` first and the folder with `--no-deps` after it, or use uv.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
cd "$folder"
read -ra packages <<< "${PACKAGES:-pip==26.3 uv==0.13.9}"
timeout 600 venv/bin/python -m pip install --quiet "${packages[@]}"

HASH=946d195a0d259cbba61165e88e65941f16e9b36ea6ddb97f00452bae8b1287d3
echo "idna==3.10 --hash=sha256:$HASH" > constraints.txt
mkdir lesson
touch lesson/lesson.py
cat > lesson/pyproject.toml << 'TOML'
[build-system]
requires = ["setuptools==80.9.0"]
build-backend = "setuptools.build_meta"

[project]
name = "lesson"
version = "1.0"
TOML

changed() {
    echo "The behaviour changed: $1." >&2
    exit 1
}
# refused REQUIREMENT WORDS: pip ends with an error that has these words.
refused() {
    if timeout 300 venv/bin/pip install -c constraints.txt "$1" > said.txt 2>&1; then
        changed "pip installs $1"
    fi
    grep -qF "$2" said.txt || changed "pip refuses $1 for another reason"
    echo "pip, $1: $(grep ERROR said.txt)"
}
refused six "all requirements must have their versions pinned"
refused ./lesson "Can't verify hashes"
timeout 300 venv/bin/uv pip install --quiet --python venv/bin/python -c constraints.txt \
    six==1.17.0 ./lesson || changed "uv refuses them"
echo "uv, six and ./lesson: installed"
