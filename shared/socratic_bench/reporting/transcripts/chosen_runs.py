"""The planned runs of an experiment that a reader chooses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.run import Run
from socratic_bench.domain.scenario import Scenario
from socratic_bench.reporting.filters import require_known


@dataclass(frozen=True, slots=True)
class ChosenRuns:
    """Planned runs in the plan's order, from any place on."""

    experiment: Experiment
    models: Sequence[str]
    scenarios: Sequence[Scenario]

    @property
    def total(self) -> int:
        """The number of planned runs that are chosen."""
        return self.experiment.manifest.repeats * len(self.scenarios) * len(self.models)

    def runs(self, first: int, count: int) -> list[Run]:
        """Return `count` runs from a place on, or as many as there are.

        It takes as long at the end of a plan as at its beginning.
        """
        runs = []
        for place in range(first, min(first + count, self.total)):
            # The order of `Experiment.runs`: models take turns.
            before, at_model = divmod(place, len(self.models))
            repeat, at_scenario = divmod(before, len(self.scenarios))
            scenario = self.scenarios[at_scenario]
            runs.append(self.experiment.run(self.models[at_model], scenario, repeat + 1))
        return runs


def chosen_runs(
    experiment: Experiment,
    *,
    models: Collection[str] = (),
    scenario: str | None = None,
    dimension: str | None = None,
) -> ChosenRuns:
    """Return the runs of these models, or of all without one, on what is asked.

    Raises InvalidInput for what the experiment does not have.
    """
    manifest = experiment.manifest
    ids = [model.id for model in manifest.models]
    for model in models:
        require_known("model", model, ids, "the experiment has no")
    if scenario is not None:
        named = (each.id for each in manifest.scenarios)
        require_known("scenario", scenario, named, "the experiment has no")
    return ChosenRuns(
        experiment,
        [id_ for id_ in ids if not models or id_ in models],
        [
            each
            for each in scenarios_of(experiment, dimension)
            if scenario is None or each.id == scenario
        ],
    )


def scenarios_of(experiment: Experiment, dimension: str | None) -> list[Scenario]:
    """Return the scenarios of a dimension, or all; raises InvalidInput for an unknown one."""
    scenarios = experiment.manifest.scenarios
    if dimension is None:
        return list(scenarios)
    named = (each.dimension for each in scenarios)
    require_known("dimension", dimension, named, "the experiment has no")
    return [each for each in scenarios if each.dimension == dimension]
