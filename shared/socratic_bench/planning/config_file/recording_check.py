"""Compares recordings with the scenarios of a configuration."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import InvalidInput
from socratic_bench.invalid_values import close_match, shown
from socratic_bench.planning.config_file.source import Mistakes, Node, Place
from socratic_bench.providers.recordings import recorded_scenarios

_PROVIDER: Final = "replay"
_MOST_NAMED: Final = 5


def check_recordings(
    root: Node,
    models: Sequence[TutorModel],
    scenarios: Sequence[Scenario],
    base_folder: Path | None,
    mistakes: Mistakes,
    unused: Mistakes,
) -> None:
    """Note recorded scenarios that the configuration does not have.

    A recording may hold more scenarios than a configuration asks: those go to `unused`. One without
    any scenario of the configuration is a mistake, since each of its runs would fail.
    """
    known = [each.id for each in scenarios]
    for model in models:
        if model.provider != _PROVIDER or base_folder is None or not known:
            continue
        try:
            recorded = recorded_scenarios(model, base_folder)
        except InvalidInput:
            continue  # noted where the model was read
        unknown = {id_: line for id_, line in recorded.items() if id_ not in known}
        if unknown and len(unknown) == len(recorded):
            problem = f"model {model.id}: its lines name no scenario of the configuration; "
            mistakes.add(root.place_of(("models",)), problem + _contrasted(unknown, known))
            continue
        file = model.id.partition("/")[2]
        for id_, line in list(unknown.items())[:_MOST_NAMED]:
            meant = close_match(id_, known)
            remedy = f"; did you mean {shown(meant)}?" if meant else ""
            problem = f"the configuration has no scenario {shown(id_)}{remedy}"
            unused.add(Place(file, line), problem)
        if (more := len(unknown) - _MOST_NAMED) > 0:
            others = "1 more scenario" if more == 1 else f"{more} more scenarios"
            unused.add(Place(file), f"the configuration lacks {others} of it")


def _contrasted(recorded: Collection[str], known: Collection[str]) -> str:
    return f"they name {_listed(recorded)}, the configuration has {_listed(known)}"


def _listed(ids: Collection[str]) -> str:
    named = ", ".join(shown(each) for each in list(ids)[:_MOST_NAMED])
    return f"{named}, …" if len(ids) > _MOST_NAMED else named
