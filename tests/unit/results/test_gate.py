"""Each way in which a gate could be misled, and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, Parameters, TutorModel
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.response import Response, Usage
from socratic_bench.domain.run import Run, RunFailure
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import InvalidInput, SocraticBenchError, UnknownExperiment
from socratic_bench.results.gate.falls import Thresholds
from socratic_bench.results.gate.gate_report import GateReport, gate_report
from socratic_bench.results.gate.text_formats import gate_annotations, gate_markdown, junit_text
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import CANONICAL, SAME_RULER
from socratic_judge.handlers import judge
from tests.contract.store.facts import record_unleased
from tests.dashboard.seeding import MONDAY

ASKS = "What might you consider first about this question, and why do you think so?"
TELLS = "You should always do this, and never that."
TUTOR = "openai/tutor"
TODAY = MONDAY + timedelta(days=24)
PROMPTS = {f"s{number:02}": f"Question {number}?" for number in range(10)}


@dataclass(frozen=True)
class Told:
    """An experiment as its answers: what was asked, what each model said, and when."""

    name: str = "main"
    prompts: Mapping[str, str] = field(default_factory=lambda: PROMPTS)
    says: Mapping[str, str] = field(default_factory=dict)
    """What is said in a scenario; ASKS in others."""

    models: Sequence[str] = (TUTOR,)
    repeats: int = 2
    days: int = 0
    """Days after MONDAY."""

    asked_after: int | None = None
    """Days after MONDAY on which the answers were asked for; None: on the same day."""

    copies: int = 0
    """The first repeats of each scenario whose answers are copies."""

    pending: int = 0
    failed: Sequence[str] = ()
    """Scenarios whose runs fail."""

    refused: Sequence[str] = ()
    version: str = "tutor-1"
    tokens: int | None = 18
    plan: Mapping[str, Any] = field(default_factory=dict)
    occasion: str | None = None

    @property
    def experiment(self) -> Experiment:
        scenarios = [
            Scenario(id=id_, dimension="student", prompt=prompt)
            for id_, prompt in self.prompts.items()
        ]
        manifest = Manifest(
            models=tuple(TutorModel(id=each) for each in self.models),
            scenarios=tuple(scenarios),
            repeats=self.repeats,
            name=self.name,
            **self.plan,
        )
        created_at = MONDAY + timedelta(days=self.days)
        return Experiment(manifest=manifest, occasion=self.occasion, created_at=created_at)

    def response(self, experiment: Experiment, run: Run) -> Response:
        asked_after = self.days if self.asked_after is None else self.asked_after
        status = Status.REFUSED if run.scenario_id in self.refused else Status.OK
        return Response(
            run=run,
            turn=1,
            last_turn=True,
            profile=experiment.manifest.profile,
            student_message=self.prompts[run.scenario_id],
            text=self.says.get(run.scenario_id, ASKS),
            status=status,
            usage=Usage(visible_output_tokens=self.tokens),
            model_version=self.version,
            recorded_at=MONDAY + timedelta(days=asked_after),
            adopted_from="run-earlier" if run.repeat <= self.copies else None,
        )

    async def stored(self, store: MemoryStore) -> Experiment:
        """Store the experiment as a finished one, but for its pending runs."""
        experiment = await store.register(self.experiment)
        runs = list(experiment.runs())
        for run in runs[: len(runs) - self.pending]:
            if run.scenario_id in self.failed:
                failure = RunFailure(
                    run=run, turn=1, profile=CANONICAL, kind="timeout", message="late", attempts=1
                )
                await store.fold([], [failure])
            else:
                response = self.response(experiment, run)
                await record_unleased(store, [response])
                await store.fold([judge(response)], [])
        return experiment


MAIN = Told()
CHANGE = Told("change", days=24, occasion="change")
FELL = dict.fromkeys(PROMPTS, TELLS)


def fewer(*left: str) -> dict[str, str]:
    return {id_: PROMPTS[id_] for id_ in left}


@dataclass(frozen=True)
class Case:
    """A baseline and a change, and the sentence that the gate says."""

    change: Told
    says: str
    passed: bool = False
    main: Told | None = MAIN
    wanted: Mapping[str, Any] = field(default_factory=dict)
    baseline: str | None = "main"


FELL_ALL = replace(CHANGE, says=FELL)
CASES = {
    "an equal tutor": Case(CHANGE, "0.99 before, 0.99 now on 10 scenarios: 0.00", passed=True),
    "a tutor that lectures": Case(FELL_ALL, "10 scenarios: −0.67"),
    "eight prompts edited, their answers fell": Case(
        replace(
            CHANGE,
            prompts={id_: p + " Now." if id_ > "s01" else p for id_, p in PROMPTS.items()},
            says={id_: TELLS for id_ in PROMPTS if id_ > "s01"},
        ),
        "2 of 10 scenarios; 8 of the baseline's are missing, have other words or no score",
    ),
    "eight scenarios deleted": Case(
        replace(CHANGE, prompts=fewer("s00", "s01")), "2 of 10 scenarios; 8 of the baseline's"
    ),
    "eight scenarios deleted, as allowed": Case(
        replace(CHANGE, prompts=fewer("s00", "s01")),
        "fewer than 5 scenarios do not tell whether by chance",
        passed=True,
        wanted={"least_shared": 0.2},
    ),
    "scenarios renamed": Case(
        replace(CHANGE, prompts={f"q{id_}": prompt for id_, prompt in PROMPTS.items()}),
        "0 of 10 scenarios; 10 of the baseline's are missing",
    ),
    "a scenario doubled under another id": Case(
        replace(CHANGE, prompts={**PROMPTS, "s10": PROMPTS["s00"]}),
        "on 10 scenarios: 0.00",
        passed=True,
    ),
    "new scenarios that are good beside old ones that fell": Case(
        replace(FELL_ALL, prompts={**PROMPTS, **{f"n{n}": f"New {n}?" for n in range(30)}}),
        "on 10 scenarios: −0.67",
    ),
    "the model renamed": Case(
        replace(CHANGE, models=("openai/tutor-2",)), "0 of 1 models; missing: openai/tutor"
    ),
    "a model left out": Case(
        CHANGE,
        "1 of 2 models; missing: openai/other",
        main=replace(MAIN, models=(TUTOR, "openai/other")),
    ),
    "another model besides": Case(
        replace(CHANGE, models=(TUTOR, "openai/other")), "does not have the model", passed=True
    ),
    "one repeat in place of two": Case(
        replace(CHANGE, repeats=1),
        "10 scored answers, 20 in the baseline, on the scenarios of both",
    ),
    "one repeat in place of two, as allowed": Case(
        replace(CHANGE, repeats=1), "0.00", passed=True, wanted={"least_shared": 0.5}
    ),
    "three runs pending": Case(
        replace(CHANGE, pending=3), "17 of 20 runs have ended", wanted={"least_coverage": 0.9}
    ),
    "a budget that ran out after seven runs": Case(
        replace(CHANGE, pending=13),
        "7 of 20 runs have ended",
        wanted={"least_coverage": 0.9},
        baseline=None,
    ),
    "runs pending, as allowed": Case(
        replace(CHANGE, pending=1), "0.00", passed=True, wanted={"allows_unfinished": True}
    ),
    "an experiment without any answer": Case(
        replace(CHANGE, pending=20), "no response has a score", wanted={"least_overall": 0.1}
    ),
    "three scenarios whose runs failed": Case(
        replace(CHANGE, failed=("s07", "s08", "s09")), "7 of 10 scenarios; 3 of the baseline's"
    ),
    "three scenarios refused": Case(
        replace(CHANGE, refused=("s07", "s08", "s09")), "7 of 10 scenarios; 3 of the baseline's"
    ),
    "copies alone": Case(
        replace(CHANGE, copies=2, asked_after=0),
        "20 of 20 answers are those of an earlier experiment, asked for on 2026-03-02 "
        "(24 days ago): `run --again` asks again",
    ),
    "copies alone, as allowed": Case(
        replace(CHANGE, copies=2, asked_after=0),
        "20 of its 20 answers are copies",
        passed=True,
        wanted={"allows_reused": True},
    ),
    "a copy where none is allowed": Case(
        replace(CHANGE, repeats=3, copies=2),
        "20 of 30 answers are those of an earlier experiment",
        wanted={"fresh_only": True},
    ),
    "an old experiment that is gated again": Case(
        replace(CHANGE, days=3),
        "answers asked for on 2026-03-05 (21 days ago)",
        passed=True,
        wanted={"least_overall": 0.9},
    ),
    "itself, by its configuration": Case(
        MAIN, "the experiment is the baseline itself, asked for on 2026-03-02", main=None
    ),
    "itself, by its id": Case(
        MAIN, "nothing has changed", passed=True, main=None, wanted={"allows_itself": True}
    ),
    "no baseline yet, as allowed": Case(
        CHANGE,
        "there is no experiment 'nowhere' in this store",
        passed=True,
        main=None,
        baseline="nowhere",
        wanted={"allows_no_baseline": True},
    ),
    "other conditions": Case(
        replace(CHANGE, plan={"system_prompt": "Ask one question."}),
        "The two experiments differ in their test conditions",
        passed=True,
    ),
    "other parameters": Case(
        replace(CHANGE, plan={"parameters": Parameters(temperature=0)}),
        "The two experiments differ in their test conditions",
        passed=True,
    ),
    "another length ruler: no counts now": Case(
        replace(CHANGE, tokens=None), "Their lengths are by different rulers", passed=True
    ),
    "another tokenizer": Case(
        replace(CHANGE, tokens=27), "Tokens for a word are far more than the others'", passed=True
    ),
    "other versions answer": Case(
        replace(CHANGE, version="fallback-7b"),
        "of several versions, or of one unlike the name: @",
        passed=True,
    ),
    "a fall at the very threshold": Case(
        replace(CHANGE, says={"s00": TELLS}), "−0.06", passed=True, wanted={"most_drop": 0.07}
    ),
    "a clock that jumped back": Case(
        replace(CHANGE, days=-400), "0.00", passed=True, wanted={"least_overall": 0.9}
    ),
}


async def gated(store: MemoryStore, case: Case, now: datetime = TODAY) -> GateReport:
    if case.main is not None:
        await case.main.stored(store)
    experiment = await case.change.stored(store)
    thresholds = Thresholds(baseline=case.baseline, **{"most_drop": 0.05, **case.wanted})
    return await gate_report(store, experiment.experiment_id, thresholds, now)


@pytest.mark.parametrize("name", CASES)
async def test_a_gate_fails_or_says_why_it_does_not(store: MemoryStore, name: str) -> None:
    case = CASES[name]
    report = await gated(store, case)
    told = [each.detail for each in report.checks if each.passed == case.passed]
    assert any(case.says in each for each in (*told, *report.notes)), (report.checks, report.notes)
    assert report.passed == case.passed, report.checks


async def test_a_baseline_of_another_profile_is_no_baseline(store: MemoryStore) -> None:
    other = replace(CHANGE, plan={"profile": SAME_RULER})
    with pytest.raises(InvalidInput, match="their figures do not compare"):
        await gated(store, Case(other, ""))


async def test_a_deleted_or_misspelt_baseline_is_told(store: MemoryStore) -> None:
    with pytest.raises(UnknownExperiment, match="there is no experiment 'mian'"):
        await gated(store, Case(CHANGE, "", baseline="mian"))
    await store.change_state(MAIN.experiment.experiment_id, ExperimentState.DELETED)
    with pytest.raises(UnknownExperiment, match="'main'"):
        await gated(store, Case(CHANGE, "", main=None))


async def test_a_pinned_experiment_of_the_name_is_no_newer_one(store: MemoryStore) -> None:
    await replace(MAIN, says=FELL).stored(store)
    await store.pin(MAIN.experiment.experiment_id, TODAY)
    newer = replace(MAIN, days=1, occasion="newer")
    report = await gated(store, Case(replace(CHANGE, says=FELL), "", main=newer))
    assert not report.passed
    assert report.falls[0].before == pytest.approx(0.99, abs=0.01)


async def test_a_fall_is_found_in_the_new_answers_beside_copies(store: MemoryStore) -> None:
    """With three of four answers copied, a fall by 0.67 would look like one by 0.16."""
    experiment = replace(CHANGE, repeats=4, copies=3, asked_after=0).experiment
    await MAIN.stored(store)
    await store.register(experiment)
    asked_anew = replace(FELL_ALL, repeats=4, copies=0)
    copied = replace(CHANGE, repeats=4, copies=3, asked_after=0)
    for run in experiment.runs():
        told = copied if run.repeat <= 3 else asked_anew
        response = told.response(experiment, run)
        await record_unleased(store, [response])
        await store.fold([judge(response)], [])
    thresholds = Thresholds(baseline="main", most_drop=0.2)
    report = await gate_report(store, experiment.experiment_id, thresholds, TODAY)
    [check] = [each for each in report.checks if "falls" in each.name]
    assert not check.passed
    assert check.value == pytest.approx(0.67, abs=0.01)
    assert "without 30 copies among its 40 answers" in check.detail
    assert any("30 answers are copies of older ones" in each for each in report.notes)


async def test_few_own_answers_beside_copies_are_too_few(store: MemoryStore) -> None:
    await replace(MAIN, repeats=10).stored(store)
    few = replace(CHANGE, repeats=2, copies=1)
    report = await gated(store, Case(few, "", main=None))
    assert not report.passed
    assert any("20 scored answers, 100 in the baseline" in each.detail for each in report.checks)


async def test_a_name_is_no_start_of_an_id(store: MemoryStore) -> None:
    await replace(MAIN, name="exp").stored(store)
    await replace(MAIN, name="feature", days=1, occasion="feature").stored(store)
    report = await gated(store, Case(CHANGE, "", main=None, baseline="exp"))
    assert report.falls[0].baseline.title == "exp"
    with pytest.raises(UnknownExperiment):
        await gated(store, Case(CHANGE, "", main=None, baseline="exp-"))


async def test_weeks_are_one_baseline_of_all_their_experiments(store: MemoryStore) -> None:
    for week in range(6):
        nightly = replace(MAIN, name="nightly", days=7 * week, occasion=f"W{week}")
        await replace(nightly, says=FELL if week < 2 else {}).stored(store)
    tonight = replace(MAIN, name="nightly", days=42, occasion="W6", says={"s00": TELLS})
    report = await gated(store, Case(tonight, "", main=None, baseline="weeks:4"))
    [fall] = report.falls
    assert fall.experiments == 4
    assert fall.before == pytest.approx(0.99, abs=0.01)
    assert "4 experiments before" in next(each.detail for each in report.checks)
    with pytest.raises(UnknownExperiment, match=r"under the conditions .* and 0 under other ones"):
        await gated(
            store, Case(replace(tonight, days=300, occasion="late"), "", baseline="weeks:4")
        )


async def test_weeks_under_other_conditions_are_no_baseline(store: MemoryStore) -> None:
    for week in range(2):
        other = replace(MAIN, days=7 * week, occasion=f"W{week}", plan={"system_prompt": "Ask."})
        await other.stored(store)
    tonight = replace(MAIN, days=14, occasion="W2")
    with pytest.raises(UnknownExperiment, match="and 2 under other ones: run the same"):
        await gated(store, Case(tonight, "", main=None, baseline="weeks:4"))


async def test_a_version_of_a_server_begins_no_line(store: MemoryStore) -> None:
    hostile = replace(CHANGE, version="x\n::error title=hi::pwned")
    report = await gated(store, Case(hostile, ""))
    assert any("pwned" in note for note in report.notes)
    assert not any("\n" in note for note in report.notes)


HOSTILE = "::error::pwned\n```\n@everyone <img src=x> ![](http://x.test)\n\x1b[31m" + "long " * 300


async def test_the_markdown_says_what_fell_where_and_whether_by_chance(store: MemoryStore) -> None:
    says = dict.fromkeys(list(PROMPTS)[:4], TELLS)
    report = await gated(store, Case(replace(CHANGE, says=says), ""))
    text = gate_markdown(report)
    assert text.startswith("## Socratic Bench gate FAILED: 1 of 1 checks\n")
    assert (
        "| openai/tutor | 0.99 | 0.72 | **−0.27** | −0.51 to −0.02 | no: more than chance" in text
    )
    assert text.count("0.99 before, 0.32 now") == 3
    assert "> You should always do this, and never that." in text


async def test_a_models_text_is_no_markup_and_no_command(store: MemoryStore) -> None:
    hostile = replace(CHANGE, says=dict.fromkeys(PROMPTS, HOSTILE), name="a|b ::error:: <b>")
    report = await gated(store, Case(hostile, ""))
    text = gate_markdown(report)
    for line in text.splitlines():
        assert not line.lstrip().startswith("::")
        assert "\x1b" not in line
        if "@everyone" in line or "<img" in line:
            assert line.startswith("> ")
    assert "> ````text" in text
    annotations = gate_annotations(report)
    assert all(line.startswith("::error title=") for line in annotations.splitlines())
    assert len(annotations.splitlines()) == sum(not each.passed for each in report.checks)


async def test_junit_and_json_have_the_numbers(store: MemoryStore) -> None:
    report = await gated(store, Case(FELL_ALL, "", wanted={"least_overall": 0.5}))
    by_name = {each.name: each for each in report.checks}
    fell = by_name["overall falls by at most 0.05"]
    assert fell.threshold == 0.05
    assert fell.value == pytest.approx(0.67, abs=0.01)
    assert 'name="threshold" value="0.05"' in junit_text(report)


async def test_an_unknown_experiment_is_told(store: MemoryStore) -> None:
    with pytest.raises(SocraticBenchError):
        await gate_report(store, "exp-none", Thresholds(least_overall=0.5), TODAY)
