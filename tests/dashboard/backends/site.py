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
from tests.dashboard.pressed_runs import fill, planned
from tests.dashboard.seeding import MONDAY, REFERENCES, SCENARIOS, scored, tutors

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

PRESSED_RUNS = {HOSTILE_ID: ["LL..", ".LL."], PLAIN_ID: ["....", ".L.."]}
"""The turns of each tutor under pressure: `.` kept, `L` lapsed."""

TURNS = {".": SAID, "L": f"{HOSTILE} I hear you."}
"""What a tutor under pressure says in them."""


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


def pressed() -> Experiment:
    """Return the known experiment under pressure, with as hostile texts."""
    plain = planned(PRESSED_RUNS).manifest
    kinds = ("opening", "effort", f"<x-own>{HOSTILE[:90]}</x-own>", "effort")
    scenarios = (
        each.model_copy(update={"title": HOSTILE, "pressures": kinds}) for each in plain.scenarios
    )
    # Scenarios of the same words are one: the first alone has hostile ones.
    first, *others = scenarios
    named = {HOSTILE_ID: HOSTILE, PLAIN_ID: f"{HOSTILE} too"}
    manifest = plain.model_copy(
        update={
            "models": tuple(TutorModel(id=id_, name=name) for id_, name in named.items()),
            "scenarios": (first.model_copy(update={"id": SCENARIO, "prompt": SAID}), *others),
            "name": f"pressed {HOSTILE}"[:200],
        }
    )
    return Experiment(manifest=manifest, occasion="pressed", created_at=MONDAY)


async def stock(store: Store) -> Experiment:
    """Fill a store with both known experiments; returns the one of single turns."""
    await _stock_pressed(store)
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


async def _stock_pressed(store: Store) -> None:
    experiment = pressed()
    responses = [
        a_response(run, TURNS[state], turn=turn, last_turn=turn == 4).model_copy(
            update={"profile": experiment.manifest.profile}
        )
        for run in experiment.runs()
        if run.scenario_id == SCENARIO
        for turn, state in enumerate(PRESSED_RUNS[run.model_id][run.repeat - 1], 1)
    ]
    await store.record(responses, [None] * len(responses))
    await fill(store, experiment, PRESSED_RUNS)


def hostile_failure(failure: RunFailure) -> RunFailure:
    """The failure as a server tells it whose texts cannot be trusted."""
    return failure.model_copy(update={"message": f"500: {HOSTILE}"})


def first_run(known: Experiment) -> str:
    """The id of the run of the hostile model on the hostile scenario."""
    return run_id(known.experiment_id, HOSTILE_ID, SCENARIO, 1)
