#!/usr/bin/env bash
# Guess: JSON is YAML, so a reader of YAML gives the values that a reader of JSON gives.
# Versions: PyYAML 6.0.3, with its own reader (SafeLoader) and with libyaml (CSafeLoader);
#   Python 3.11.
# Seen: PyYAML reads `1e-1` as a text, since it wants a point (`1.0e-1`). An emoji that `json.dumps`
#   escaped becomes two lone halves, which UTF-8 cannot hold, or an error of libyaml. A tab as
#   indentation and DEL within a text are errors.
# Output:
#   {"temperature": 1e-1}: json 0.1, SafeLoader '1e-1', CSafeLoader '1e-1'
#   {"text": "\ud83d\ude42"}: json '🙂', SafeLoader '\ud83d\ude42', CSafeLoader 'ScannerError'
#   {TAB"text": "a"}: json 'a', SafeLoader 'ScannerError', CSafeLoader 'a'
#   {"text": "aDEL"}: json 'a\x7f', SafeLoader 'ReaderError', CSafeLoader 'ReaderError'
# For users: read JSON with a reader of JSON, in a program that takes both formats, too. In YAML
#   write `1.0e-1` or `0.1` for a number: a check that it is a number finds the text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-PyYAML==6.0.3}"
timeout 600 "$folder/bin/pip" install --quiet "${packages[@]}"
PYTHONIOENCODING=utf-8 timeout 60 "$folder/bin/python" - << 'PYTHON'
import json
import sys

import yaml

DOCUMENTS = {
    '{"temperature": 1e-1}': ["1e-1", "1e-1"],
    json.dumps({"text": "🙂"}): ["\ud83d\ude42", "ScannerError"],
    '{\n\t"text": "a"}': ["ScannerError", "a"],
    '{"text": "a\x7f"}': ["ReaderError", "ReaderError"],
}


def value_of(document, loader):
    """Return the only value of a document, or the name of the error."""
    try:
        (value,) = yaml.load(document, loader).values()
    except yaml.YAMLError as error:
        return type(error).__name__
    return value


seen = {document: [value_of(document, loader) for loader in (yaml.SafeLoader, yaml.CSafeLoader)]
        for document in DOCUMENTS}
for document, (own, libyaml) in seen.items():
    name = document.replace("\n\t", "TAB").replace("\x7f", "DEL")
    (true,) = json.loads(document).values()
    print(f"{name}: json {true!r}, SafeLoader {own!r}, CSafeLoader {libyaml!r}")
if seen != DOCUMENTS:
    sys.exit("The behaviour changed: PyYAML reads other documents as JSON means them.")
PYTHON
