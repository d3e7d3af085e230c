"""Profile `socratic-v2`: the form of a tutor's turn, and reading dimensions beside it.

`docs/socratic-v2.md` defines it, rule by rule (D1 to D21).
"""
