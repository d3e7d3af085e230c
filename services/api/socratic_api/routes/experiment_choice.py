"""The experiments of a request: `experiment=` in the query of an address."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from starlette.requests import Request

from socratic_api.endpoints import QueryParameter
from socratic_bench.errors import InvalidInput

_ID_LIMIT = 200

EXPERIMENT: Final = QueryParameter(
    "experiment",
    "The id of one experiment, or the start of the id, an occasion or a name that only one has; "
    "`all` for a row for each model and set of conditions; without it, the pinned experiments, or "
    "else the newest complete one that is no pilot, with others under its conditions.",
    {"type": "string", "maxLength": _ID_LIMIT},
)

PROFILE: Final = QueryParameter(
    "profile",
    "The profile to read the scores by; without it, the experiment's own one. `socratic-bench "
    "rescore` scores an experiment by another profile.",
    {"type": "string", "minLength": 1, "maxLength": _ID_LIMIT},
)

PROBLEMS: Final[Mapping[int, str]] = {
    400: "Several experiments could be meant; the detail names them",
    404: "There is no such experiment",
    422: "The experiment's id is none at all, or it has no score by the profile",
    503: "The store does not answer",
}
"""The possible problems of such a request."""


def chosen_experiment(request: Request) -> str | None:
    """Return the requested experiment, or `all`; None without one. Raises InvalidInput."""
    experiment = request.query_params.get("experiment") or None
    if experiment is not None and len(experiment) > _ID_LIMIT:
        raise InvalidInput(f"experiment: longer than {_ID_LIMIT} characters; no id is")
    if experiment is not None and not experiment.isprintable():
        raise InvalidInput("experiment: holds characters that no id has")
    return experiment


def chosen_profile(request: Request) -> str | None:
    """Return the requested profile; None without one. Raises InvalidInput."""
    profile = request.query_params.get("profile") or None
    if profile is not None and (len(profile) > _ID_LIMIT or not profile.isprintable()):
        raise InvalidInput("profile: longer than any name, or with characters that no name has")
    return profile


def asked_key(*asked: str | None) -> str:
    """Return a part of a cache key that only these parts give; empty if all are None."""
    return json.dumps(asked) if any(asked) else ""
