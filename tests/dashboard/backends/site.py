"""A site: the pages over one backend, what tests may do behind them, and the data they find."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.identifiers import run_id
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.scenario import Scenario
from socratic_bench.ports.stores.responses import RecordedFailure
from socratic_bench.ports.stores.store import Store
from tests.contract.store.facts import a_failure, a_response
from tests.dashboard.seeding import REFERENCES, SCENARIOS, scored, tutors

HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "<svg onload=document.title='owned'></svg><a href=\"javascript:document.title='owned'\">x</a>"
    "{{7*7}} ${document.title='owned'} \u202eoverride\u202c \u2066isolate \U0001f914 "
    "\u0645\u0631\u062d\u0628\u0627"
)
"""What a model, a server or an author of plans may put where text is shown."""

SAID = f"{HOSTILE} You should always rest. Perhaps consider it. What might you do?"
LONG = "You must perhaps consider it. " * 7_000
"""About 200 KB."""

HOSTILE_ID = "local/<x-own onmouseover=alert(1)>own</x-own>"
PLAIN_ID = "provider-1/tutor-1"
SCENARIO = "<x-own>id</x-own> a/b?c#d"
"""An id with what has a meaning in markup and in addresses."""


@dataclass(frozen=True)
class Site:
    """The pages over one backend."""

    pages: str
    """The address that page names follow, without a slash at its end."""

    api: str
    """The address of the API, for a client other than a browser."""

    store: Store
    known: Experiment
    """An experiment with hostile texts wherever somebody else's text can stand."""

    key: str = ""
    """The key for writing; empty without one."""

    starts: bool = False
    """Whether an experiment can be started on the page."""

    streams: bool = True
    begin: Callable[[dict[str, Any]], Awaitable[object]] | None = None
    """Starts an experiment elsewhere than on the page; None where nothing carries one out."""


async def stock(store: Store) -> Experiment:
    """Fill a store with the known experiment."""
    hostile = TutorModel(id=HOSTILE_ID, name=HOSTILE)
    scenario = Scenario(
        id=SCENARIO, dimension="ethical", prompt=SAID, title=HOSTILE, persona=HOSTILE, aim=HOSTILE
    )
    known = Experiment(
        manifest=Manifest(
            models=(*REFERENCES, hostile, *tutors(3)[2:]),
            scenarios=(scenario, *SCENARIOS),
            repeats=2,
            name=HOSTILE[:200],
            notes=HOSTILE,
        ),
        occasion="known",
        created_at=datetime.now(UTC),
    )
    await store.register(known)
    runs = list(known.runs())
    failed = [run for run in runs if run.model_id == PLAIN_ID and run.repeat == 2][:3]
    failures = [hostile_failure(a_failure(run)) for run in failed]
    answered = [run for run in runs if run not in failed]
    read = [run for run in answered if run.scenario_id in {SCENARIO, "ambiguous-1"}]
    texts = [LONG if run.scenario_id == "ambiguous-1" else SAID for run in read]
    responses = [a_response(run, text) for run, text in zip(read, texts, strict=True)]
    await store.record(responses, [None] * len(read))
    await store.record_failures([RecordedFailure(each, 0) for each in failures])
    await store.fold([scored(run) for run in answered], failures)
    await store.complete(known.experiment_id, datetime.now(UTC))
    return known


def hostile_failure(failure: RunFailure) -> RunFailure:
    """The failure as a server tells it whose texts cannot be trusted."""
    return failure.model_copy(update={"message": f"500: {HOSTILE}"})


def first_run(known: Experiment) -> str:
    """The id of the run of the hostile model on the hostile scenario."""
    return run_id(known.experiment_id, HOSTILE_ID, SCENARIO, 1)
