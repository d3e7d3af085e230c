"""Plans the import of a file of another tool: experiments whose answers came with the file.

The file is read twice: for its plan, then for its answers. Both readings hold one conversation at a
time; the plan holds what students say.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.identifiers import content_name
from socratic_bench.domain.run import MOST_REPEATS
from socratic_bench.domain.scenario import LONGEST_FORM, MOST_FORMS, Scenario
from socratic_bench.errors import InvalidInput
from socratic_bench.providers.built_in import IMPORTED_FROM, IMPORTED_PROVIDER
from socratic_bench.scoring import visible_text
from socratic_bench.scoring.exchange import Status, effective_status
from socratic_cli.reading.logged_runs import MOST_TURNS_KEPT, LogFacts, LoggedRun, Unread, clean
from socratic_cli.reading.logs import Log

MOST_SAMPLES: Final = 50_000
"""The most samples of one file: the plan has all that students say."""

_LONGEST_NAME: Final = 150
_LONGEST_PROMPT: Final = 20_000
_NOT_KNOWN: Final = "(the file does not say what was asked)"
_NO_DIMENSION: Final = "imported"


class _Place(NamedTuple):
    """The place of a run in a plan."""

    model: str
    scenario: str
    repeat: int


@dataclass(slots=True)
class _Sample:
    """What the file tells of one sample."""

    dimension: str
    messages: tuple[str, ...] = ()
    """What the student says in the longest run."""

    key: tuple[str, ...] = ()


class Positions:
    """Gives each run of a file its place, the same in every reading."""

    def __init__(self) -> None:
        self._named: dict[tuple[str, str], str] = {}
        self._asked: dict[tuple[str, str], str] = {}
        self._seen: Counter[tuple[str, str]] = Counter()
        self._taken: set[_Place] = set()

    def of(self, run: LoggedRun) -> _Place | None:
        """Return the place of the next run; None if an earlier one has it."""
        model, scenario = run.model, self._scenario(run)
        self._seen[model, scenario] += 1
        place = _Place(model, scenario, run.repeat or self._seen[model, scenario])
        if place in self._taken or place.repeat > MOST_REPEATS:
            return None
        self._taken.add(place)
        return place

    def _scenario(self, run: LoggedRun) -> str:
        """Return the sample's name. A model that gets other words under a name has another sample,
        unless the file counts repeats itself.
        """
        if run.sample and run.repeat is not None:
            return named(run.sample)
        opening = hashlib.blake2b(clean(_opening(run)).encode(), digest_size=8).hexdigest()
        name = named(run.sample) if run.sample else f"question-{opening}"
        known = self._asked.setdefault((run.model, name), opening)
        return name if known == opening else f"{name} ({opening[:6]})"


def _opening(run: LoggedRun) -> str:
    """Return all that was said up to the run's first answer."""
    asked = run.turns[0].student if run.turns else run.asked
    return "\n".join([*(text for turn in run.before for text in (turn.student, turn.tutor)), asked])


def named(text: str) -> str:
    """Return a text as a name: on one line, and cut where it is long, with a hash of the whole."""
    words = " ".join(clean(text).split()) or "unnamed"
    if len(words) <= _LONGEST_NAME:
        return words
    return f"{words[: _LONGEST_NAME - 20]}… {content_name('n', words, 8)}"


@dataclass(slots=True)
class FilePlan:
    """The plan of a file, and what its reader has to tell."""

    path: Path
    facts: LogFacts
    experiments: tuple[Experiment, ...]
    """One for each group of models with samples in common."""

    runs: int = 0
    answers: int = 0
    unread: list[Unread] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    """The places of conversations that are longer than MOST_TURNS_KEPT."""

    statuses: Counter[str] = field(default_factory=Counter)
    """Answers that get no score, by status."""

    failed: int = 0
    """Runs that failed at the other tool."""

    @property
    def source(self) -> str:
        """The file and the tool that wrote it, in words."""
        return source_of(self.path, self.facts)


def source_of(path: Path, facts: LogFacts) -> str:
    """Return a file and the tool that wrote it, in words."""
    version = f" {facts.version}" if facts.version else ""
    return f"{named(path.name)} ({facts.tool}{version})"


def planned(log: Log, *, name: str | None, profile: str, now: datetime) -> FilePlan:
    """Read a log for its plan.

    Raises InvalidInput for a log without a conversation, and for one with more than MOST_SAMPLES
    samples.
    """
    positions = Positions()
    samples: dict[str, _Sample] = {}
    of_models: defaultdict[str, dict[str, None]] = defaultdict(dict)
    prompts: defaultdict[str, set[str | None]] = defaultdict(set)
    repeats: Counter[str] = Counter()
    plan = FilePlan(log.path, log.facts, ())
    for row in log.rows():
        if isinstance(row, Unread):
            plan.unread.append(row)
            continue
        place = positions.of(row)
        if place is None:
            repeat = f"repeat {row.repeat} of {row.sample!r} stands in the file before"
            plan.unread.append(Unread(row.place, repeat))
            continue
        _count(plan, row)
        prompts[row.model].add(row.system_prompt)
        of_models[row.model][place.scenario] = None
        repeats[row.model] = max(repeats[row.model], place.repeat)
        _add(samples.setdefault(place.scenario, _Sample(row.dimension)), row)
        if len(samples) > MOST_SAMPLES:
            raise InvalidInput(f"{log.path} has more than {MOST_SAMPLES:,} samples: divide it")
    if not samples:
        first = f": {plan.unread[0].place} {plan.unread[0].problem}" if plan.unread else ""
        raise InvalidInput(f"{log.path} has no conversation of a tutor{first}")
    groups = _groups(of_models)
    occasion = _occasion(log)
    plan.experiments = tuple(
        Experiment(
            manifest=_manifest(
                log,
                models,
                {each: sample for each, sample in samples.items() if each in wanted},
                prompts,
                max(repeats[each] for each in models),
                profile,
                _name(log, name, models, several=len(groups) > 1),
            ),
            occasion=occasion,
            created_at=min(log.facts.created or now, now),
            submitted=False,
        )
        for wanted, models in groups
    )
    return plan


def _groups(of_models: Mapping[str, Mapping[str, None]]) -> list[tuple[set[str], list[str]]]:
    """Return the samples and the models of each experiment.

    A model joins others whose samples it has at least half of, and they of its own.
    """
    groups: list[tuple[set[str], list[str]]] = []
    for model, its_samples in of_models.items():
        for samples, models in groups:
            both = len(samples & its_samples.keys())
            if 2 * both >= max(len(samples), len(its_samples)):
                samples.update(its_samples)
                models.append(model)
                break
        else:
            groups.append((set(its_samples), [model]))
    return groups


def _name(log: Log, name: str | None, models: Sequence[str], *, several: bool) -> str:
    own = name or log.path.stem or log.path.name
    more = f" and {len(models) - 1} more" if len(models) > 1 else ""
    return named(f"{own} {models[0]}{more}" if several else own)


def _occasion(log: Log) -> str:
    """Return the file's own occasion: the same file is the same experiment, under any name."""
    with log.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    created = log.facts.created
    return f"{created:%Y-%m-%d} {digest[:12]}" if created else f"file {digest[:12]}"


def _count(plan: FilePlan, run: LoggedRun) -> None:
    plan.runs += 1
    plan.answers += min(len(run.turns), MOST_TURNS_KEPT)
    plan.failed += run.error is not None
    if len(run.turns) > MOST_TURNS_KEPT:
        plan.cut.append(run.place)
    for turn in run.turns:
        visible = visible_text.read(turn.text).text
        status = effective_status(turn.status, visible) if run.error is None else Status.ERROR
        if status is not Status.OK:
            plan.statuses[status] += 1


def _add(sample: _Sample, run: LoggedRun) -> None:
    said = tuple(clean(turn.student) for turn in run.turns[:MOST_TURNS_KEPT])
    said = said or ((clean(run.asked),) if run.asked else ())
    if len(said) > len(sample.messages):
        sample.messages = said
    sample.key = sample.key or run.answer_key


def _manifest(
    log: Log,
    models: Sequence[str],
    samples: Mapping[str, _Sample],
    prompts: Mapping[str, Collection[str | None]],
    repeats: int,
    profile: str,
    name: str,
) -> Manifest:
    system = {model: _only(prompts[model]) for model in models}
    shared = next(iter(system.values())) if len(set(system.values())) == 1 else ""
    return Manifest(
        models=tuple(
            TutorModel(
                id=model_id(log.facts, model),
                name=f"{named(model)} (imported)",
                system_prompt=None if system[model] == shared else system[model],
            )
            for model in models
        ),
        scenarios=tuple(_scenario(id_, each) for id_, each in samples.items()),
        system_prompt=shared,
        repeats=repeats,
        profile=profile,
        name=name,
        notes=f"{IMPORTED_FROM}{source_of(log.path, log.facts)}",
    )


def _only(prompts: Collection[str | None]) -> str:
    """Return the one system prompt of a model; empty where it is unknown or has several."""
    known = {clean(each) for each in prompts if each is not None}
    return known.pop() if len(known) == 1 else ""


def model_id(facts: LogFacts, model: str) -> str:
    """Return the id of a tutor whose answers came with a file."""
    return f"{IMPORTED_PROVIDER}/{facts.slug}/{named(model)}"


def _scenario(id_: str, sample: _Sample) -> Scenario:
    first, *later = [
        each[:_LONGEST_PROMPT].strip() or _NOT_KNOWN for each in sample.messages or ("",)
    ]
    return Scenario(
        id=id_,
        dimension=named(sample.dimension) if sample.dimension else _NO_DIMENSION,
        prompt=first,
        follow_ups=tuple(later),
        key=tuple(filter(_is_key_form, map(clean, sample.key)))[:MOST_FORMS],
    )


def _is_key_form(form: str) -> bool:
    return len(form) <= LONGEST_FORM and any(map(str.isalnum, form))
