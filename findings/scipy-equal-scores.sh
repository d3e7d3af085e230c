#!/usr/bin/env bash
# Guess: a t test beside a side without any spread is exact, so SciPy says nothing.
# Versions: scipy 1.17.1 with numpy 2.4.6; Python 3.11.
# Seen: a side of equal scores warns of a loss of precision and of unreliable results, except where
#   all are 0. The p value is right: two-sided Student's t with pooled variance, by hand 0.0044150.
# Output:
#   scores of 1.0: 1 warning, p 0.0044150
#   scores of 0.0: 0 warnings, p 0.0377496
# For users: exported scores of a tutor that has 1.00 everywhere compare well in SciPy in spite of the
#   warning; a test suite that makes errors of warnings fails on them.
set -euo pipefail
shopt -s inherit_errexit
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-scipy==1.17.1 numpy==2.4.6}"
timeout 600 "$folder/bin/pip" install --quiet "${packages[@]}"

timeout 60 "$folder/bin/python" - << 'PYTHON'
import sys
import warnings

from scipy import stats

seen = []
for score in (1.0, 0.0):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        p = stats.ttest_ind([0.2, 0.3], [score, score]).pvalue
    seen.append((len(caught), f"{p:.7f}"))
    said = "warning" if len(caught) == 1 else "warnings"
    print(f"scores of {score}: {len(caught)} {said}, p {p:.7f}")
# By hand: the pooled variance is 0.0025, the standard error 0.05; 2 degrees of freedom.
t = 0.75 / 0.05
by_hand = 1 - t / (t * t + 2) ** 0.5
if [count for count, _ in seen] != [1, 0] or seen[0][1] != f"{by_hand:.7f}":
    sys.exit("The behaviour changed: compare the head of this script.")
PYTHON
