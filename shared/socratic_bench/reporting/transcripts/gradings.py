"""The stored gradings of responses, for readers of their scores."""

from __future__ import annotations

from collections.abc import Iterable

from socratic_bench.domain.grading import Grading, grade_of, grading_run_id
from socratic_bench.domain.response import Response
from socratic_bench.errors import BrokenPlugin, UnknownProfile
from socratic_bench.ports.stores.responses import Responses
from socratic_bench.scoring.profiles import needs_grade


async def with_gradings(store: Responses, responses: Iterable[Response]) -> list[Response]:
    """Return responses with their stored gradings, where their profile needs a grade."""
    given = list(responses)
    graded = [each for each in given if _needs_grade(each.profile)]
    if not graded:
        return given
    stored = await store.responses({_grading_run_of(each) for each in graded})
    gradings = {run_id: Grading(score=grade_of(found[0].text)) for run_id, found in stored.items()}
    return [
        each.model_copy(update={"grading": gradings.get(_grading_run_of(each))})
        if _needs_grade(each.profile)
        else each
        for each in given
    ]


def _grading_run_of(response: Response) -> str:
    return grading_run_id(response.run.experiment_id, response.text)


def _needs_grade(profile: str) -> bool:
    try:
        return needs_grade(profile)
    except (UnknownProfile, BrokenPlugin):
        return False
