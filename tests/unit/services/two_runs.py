"""An experiment of two runs, each of one turn."""

from __future__ import annotations

from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.scenario import Scenario
from tests.unit.events.examples import TIME

EXPERIMENT = Experiment(
    manifest=Manifest(
        models=(TutorModel(id="reference/socratic"),),
        scenarios=(Scenario(id="s", dimension="ambiguous", prompt="Help?"),),
        repeats=2,
    ),
    created_at=TIME,
)
