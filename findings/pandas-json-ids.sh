#!/usr/bin/env bash
# Guess: `read_json` keeps the types of JSON Lines: a text in quotation marks stays a text.
# Versions: pandas 3.0.0, numpy 2.4.6; Python 3.11.
# Seen: a column of texts that all look like numbers becomes numbers. Zeros at the front, zeros at
#   the end and digits beyond 17 are lost without a word.
# Output:
#   written {'student': '007', 'model_version': '1.10', 'run': '12345678901234567891'}
#   read    {'student': 7, 'model_version': 1.1, 'run': 1.2345678901234567e+19}
#   read with dtype=False: as written
# For users: a join by such an id finds nothing, or finds other rows: '007' and '7' are one. Pass
#   `dtype=False` (or a type for each column) to every `read_json`, or export Parquet.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-pandas==3.0.0}"
timeout 600 "$folder/bin/pip" install --quiet "${packages[@]}"
timeout 60 "$folder/bin/python" - << 'PYTHON'
import json
import sys
from io import StringIO

import pandas

ROW = {"student": "007", "model_version": "1.10", "run": "12345678901234567891"}
SEEN = {"student": 7, "model_version": 1.1, "run": 12345678901234567891.0}


def read(**options):
    table = pandas.read_json(StringIO(json.dumps(ROW) + "\n"), lines=True, **options)
    return {name: column.tolist()[0] for name, column in table.items()}


usual, kept = read(), read(dtype=False)
print("written", ROW)
print("read   ", usual)
print("read with dtype=False:", "as written" if kept == ROW else kept)
if usual != SEEN or kept != ROW:
    sys.exit("The behaviour changed: pandas keeps texts in another way.")
PYTHON
