"""`/api/profiles`: the scorer profiles; `/api/validity`: what their scores are worth."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import cache, lru_cache
from typing import Final

import structlog
from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import JSON, ReadyBody, make_ready, ready_response
from socratic_api.endpoints import ApiEndpoint
from socratic_bench.errors import StoreError
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.research.validity_report import ValidityReport, published_figures
from socratic_bench.scoring.evidence import Mark
from socratic_bench.scoring.profile import (
    CANONICAL,
    SAME_RULER,
    Profile,
    VectorDescription,
    combining,
)
from socratic_bench.scoring.profiles import graded_names, profile_named, profile_names
from socratic_bench.scoring.score import score

log = structlog.get_logger(__name__)


class WorkedExample(BaseModel):
    """A response and what the running scorer makes of it."""

    model_config = ConfigDict(frozen=True)

    text: str
    output_tokens: float | None
    """None: counted by words x 1.3."""

    score: float | None
    """Of the vector it is an example of."""

    arithmetic: str | None
    """The calculation written out."""

    word: str | None
    """The score in a word."""


class NamedRange(BaseModel):
    """A word for the scores from `least` up to the next range."""

    model_config = ConfigDict(frozen=True)

    least: float
    word: str


class DescribedVector(BaseModel):
    """A vector in words."""

    model_config = ConfigDict(frozen=True)

    name: str
    meaning: str
    formula: str
    examples: tuple[WorkedExample, ...]
    ranges: tuple[NamedRange, ...]
    """Words for its scores, the highest range first."""


class LegendEntry(BaseModel):
    """A kind of span in the evidence for a score."""

    model_config = ConfigDict(frozen=True)

    kind: str
    name: str
    meaning: str
    mark: Mark
    """How to mark it: it raises the score, lowers it, does neither, or is a longer passage."""


class DescribedProfile(BaseModel):
    """A scorer profile, as it describes itself."""

    model_config = ConfigDict(frozen=True)

    name: str
    canonical: bool
    """Whether it is the one used where none is named."""

    vectors: tuple[DescribedVector, ...]
    weights: dict[str, dict[str, float]]
    """Per dimension, the weight of each vector in `overall`; all count equally elsewhere."""

    overall_formula: str | None
    """The formula of `overall`; None: the weighted mean of the vectors."""

    legend: tuple[LegendEntry, ...]


class ProfileList(BaseModel):
    """The scorer profiles that are installed, and those with the weights of configurations."""

    model_config = ConfigDict(frozen=True)

    profiles: tuple[DescribedProfile, ...]


MOST_WEIGHTED: Final = 20
"""The most profiles with other weights in the list: those of the newest experiments."""


def profile_endpoints(store: Experiments) -> list[ApiEndpoint]:
    """Return the endpoint of the installed profiles, found at the first request, and of those with
    the weights that experiments of the store name.
    """

    async def list_profiles(request: Request) -> Response:
        # Without the store the installed profiles are still known.
        weighted: dict[str, None] = {}
        with suppress(StoreError):
            outlines = await store.outlines()
            weighted = dict.fromkeys(name for each in outlines for name in each.weightings)
        names = tuple(weighted)[:MOST_WEIGHTED]
        return ready_response(request, await asyncio.to_thread(_described, names))

    return [
        ApiEndpoint(
            "/api/profiles",
            list_profiles,
            "The scorer profiles: vectors, formulas, worked examples, weights",
            ProfileList,
        )
    ]


@lru_cache(maxsize=8)
def _described(weighted: tuple[str, ...]) -> ReadyBody:
    names = (*profile_names(), SAME_RULER, *graded_names(), *weighted)
    profiles = tuple(profile for name in names if (profile := _usable(name)))
    return make_ready(to_json(ProfileList(profiles=profiles)), JSON)


def _usable(name: str) -> DescribedProfile | None:
    """Return the described profile; log a profile that does not work, and return None."""
    try:
        return _describe(profile_named(name))
    except Exception as error:  # noqa: BLE001 - whatever a profile raises, the others are listed
        log.warning("scorer profile left out", profile=name, reason=str(error))
        return None


def _describe(profile: Profile) -> DescribedProfile:
    combined = combining(profile)
    return DescribedProfile(
        name=profile.name,
        canonical=profile.name == CANONICAL,
        vectors=tuple(_describe_vector(profile, vector) for vector in profile.describe()),
        weights={
            dimension: {vector: float(given.get(vector, 0.0)) for vector in profile.vectors}
            for dimension, given in profile.weights.by_dimension.items()
        },
        overall_formula=combined.overall_formula if combined else None,
        legend=tuple(
            LegendEntry(kind=each.kind, name=each.name, meaning=each.meaning, mark=each.mark)
            for each in profile.legend()
        ),
    )


def _describe_vector(profile: Profile, vector: VectorDescription) -> DescribedVector:
    return DescribedVector(
        name=vector.name,
        meaning=vector.meaning,
        formula=vector.formula,
        examples=tuple(
            _work_out(profile, vector.name, text, tokens) for text, tokens in vector.examples
        ),
        ranges=tuple(NamedRange(least=each.least, word=each.word) for each in vector.ranges),
    )


def _work_out(profile: Profile, vector: str, text: str, tokens: float | None) -> WorkedExample:
    scored = score(text, output_tokens=tokens, profile=profile)
    fact = scored.evidence.facts.get(vector)
    return WorkedExample(
        text=text,
        output_tokens=tokens,
        score=scored[vector],
        arithmetic=fact.sentence if fact else None,
        word=fact.word if fact else None,
    )


def validity_endpoints() -> list[ApiEndpoint]:
    """Return the endpoint of the published figures."""

    async def validity(request: Request) -> Response:
        return ready_response(request, _ready())

    return [
        ApiEndpoint(
            "/api/validity",
            validity,
            "What the scores are worth: agreement with people's labels, gaming, losses",
            ValidityReport,
        )
    ]


@cache
def _ready() -> ReadyBody:
    return make_ready(to_json(published_figures()), JSON)
