"""What a request's query chooses: experiment, profile, filters, and a page of a list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.requests import Request

from socratic_api.endpoints import QueryParameter
from socratic_bench.errors import InvalidInput
from socratic_bench.results.filters import Filters, written_time
from socratic_bench.scoring.weighted_profile import MARK

OFFSET_LIMIT: Final = 1_000_000

PAGE_BYTES: Final = 4_000_000
"""Bytes of the entries of a page: a function gives whole answers, of little more than this."""

Entry = TypeVar("Entry", bound=BaseModel)


def page_of(usual: int, most: int) -> tuple[QueryParameter, ...]:
    """Return the parameters of a page with `usual` entries by default and `most` at most."""
    return (
        QueryParameter(
            "offset",
            "How many to pass over.",
            {"type": "integer", "minimum": 0, "maximum": OFFSET_LIMIT, "default": 0},
        ),
        QueryParameter(
            "limit",
            "How many to return; fewer where they are large. `next_offset` leads to the next page.",
            {"type": "integer", "minimum": 1, "maximum": most, "default": usual},
        ),
    )


def page_within(entries: Iterable[Entry], most_bytes: int = PAGE_BYTES) -> tuple[Entry, ...]:
    """Return the first of the entries, as many as fit into a page, and one at least."""
    page: list[Entry] = []
    size = 0
    for entry in entries:
        size += len(to_json(entry)) + 1
        if page and size > most_bytes:
            break
        page.append(entry)
    return tuple(page)


def next_offset(offset: int, page: int, total: int) -> int | None:
    """Return where the next page begins, after one with `page` entries; None after the last."""
    end = offset + page
    return end if page and end < total else None


def whole_number(request: Request, name: str, *, default: int, low: int, high: int) -> int:
    """Return a number in the query. Raises InvalidInput for one that is out of bounds."""
    text = request.query_params.get(name)
    if text is None:
        return default
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if not low <= number <= high:
        raise InvalidInput(f"{name}: must be a whole number from {low} to {high:,}")
    return number


def flag(request: Request, name: str) -> bool:
    """Return a yes or no in the query; no without one. Raises InvalidInput for anything else."""
    match request.query_params.get(name):
        case None | "false":
            return False
        case "true":
            return True
    raise InvalidInput(f"{name}: must be true or false")


_ID_LIMIT = 200
NAME_LIMIT: Final = 300
_MOST_MODELS: Final = 20

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

TIMES: Final = "A date such as 2026-11-23, or a time such as 2026-11-23T12:00Z, in UTC by default."

MODELS: Final = QueryParameter(
    "model",
    "The id of a model to show, once for each; without it, all. Ranks stay those among all models "
    "of a table.",
    {
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": NAME_LIMIT},
        "maxItems": _MOST_MODELS,
    },
)

DIMENSION: Final = QueryParameter(
    "dimension",
    "One dimension: every figure is that of its scenarios alone.",
    {"type": "string", "minLength": 1, "maxLength": NAME_LIMIT},
)

SINCE: Final = QueryParameter(
    "since", f"Experiments created at this time or later. {TIMES}", {"type": "string"}
)

UNTIL: Final = QueryParameter(
    "until",
    f"Experiments created before this time, and of a date before its end. {TIMES}",
    {"type": "string"},
)

FILTERS: Final = (MODELS, DIMENSION, SINCE, UNTIL)

PROBLEMS: Final[Mapping[int, str]] = {
    400: "Several experiments could be meant; the detail names them",
    404: "There is no such experiment",
    422: "A parameter is no id, name or time, or names what no experiment has, or there is no "
    "score by the profile",
    503: "The store does not answer",
}
"""The possible problems of such a request."""


class Results(NamedTuple):
    """The results that a request asks for."""

    experiment: str | None
    profile: str | None
    filters: Filters

    @property
    def key(self) -> str:
        """A part of a cache key that only these results have; empty for the default ones."""
        return asked_key(self.experiment, self.profile, *self.filters.key)


def chosen_results(request: Request) -> Results:
    """Return the requested results. Raises InvalidInput, which names the parameter."""
    return Results(chosen_experiment(request), chosen_profile(request), chosen_filters(request))


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
    if profile is not None:
        # A `+` that an address does not write as %2B arrives as a space.
        profile = profile.replace(MARK.replace("+", " "), MARK)
    if profile is not None and (len(profile) > _ID_LIMIT or not profile.isprintable()):
        raise InvalidInput("profile: longer than any name, or with characters that no name has")
    return profile


def chosen_filters(request: Request) -> Filters:
    """Return the requested filters. Raises InvalidInput, which names the parameter."""
    return replace(
        chosen_time(request),
        models=chosen_models(request),
        dimension=chosen_name(request, "dimension"),
    )


def chosen_time(request: Request) -> Filters:
    """Return the requested time as the only filter. Raises InvalidInput."""
    since, until = (request.query_params.get(name) for name in ("since", "until"))
    return Filters(
        since=written_time("since", since) if since else None,
        until=written_time("until", until) if until else None,
    )


def chosen_models(request: Request) -> tuple[str, ...]:
    """Return the ids of the requested models, sorted; none asks for all. Raises InvalidInput."""
    models = {_name("model", text) for text in request.query_params.getlist("model") if text}
    if len(models) > _MOST_MODELS:
        raise InvalidInput(f"model: {len(models)} of them; one answer takes {_MOST_MODELS}")
    return tuple(sorted(models))


def chosen_name(request: Request, name: str) -> str | None:
    """Return the name or id that a parameter gives; None without one. Raises InvalidInput."""
    text = request.query_params.get(name)
    return _name(name, text) if text else None


def _name(what: str, text: str) -> str:
    if len(text) > NAME_LIMIT or not text.isprintable():
        raise InvalidInput(f"{what}: longer than any name, or with characters that no name has")
    return text


def asked_key(*asked: str | None) -> str:
    """Return a part of a cache key that only these parts give; empty if all are None."""
    return json.dumps(asked) if any(asked) else ""
