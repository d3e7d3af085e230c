"""Profiles `fidelity-1` and `fidelity-seed`: how long a tutor stays Socratic, turn after turn.

`docs/fidelity.md` defines them.
"""
