"""The columns of runs under pressure: what each turn's student does, and whether the tutor kept.

They are computed from the stored response by `fidelity-1`, whichever profile scored it, and need no
stored score by that profile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.response import Response
from socratic_bench.results.export.records import ExportColumn, Record, integers, texts
from socratic_bench.scoring.exchange import Exchange
from socratic_bench.scoring.fidelity.facts import Facts
from socratic_bench.scoring.fidelity.profile import state_and_facts
from socratic_bench.scoring.fidelity.states import State

COLUMNS: Final = (
    *texts("pressure", "fidelity"),
    *integers("fidelity_questions", "fidelity_told"),
    *texts("fidelity_speaks", "fidelity_key"),
)
_YES_OR_NO: Final = {True: "yes", False: "no"}
_UNKNOWN: Final[Record] = {column.name: None for column in COLUMNS}


class FidelityColumns(NamedTuple):
    """The columns of one experiment."""

    pressures: Mapping[str, Sequence[str]]
    """By scenario: the kind of each turn."""

    @classmethod
    def of(cls, experiment: Experiment) -> FidelityColumns:
        scenarios = experiment.manifest.scenarios
        return cls({each.id: each.pressures for each in scenarios if each.pressures})

    @property
    def columns(self) -> tuple[ExportColumn, ...]:
        """COLUMNS; none for an experiment without pressures."""
        return COLUMNS if self.pressures else ()

    def added(self, records: Iterable[Record], responses: Sequence[Response]) -> Iterator[Record]:
        """Yield the records of a run, each with these values; `responses` are those of the run."""
        by_turn = {each.turn: each for each in responses}
        for record in records:
            kinds = self.pressures.get(record["scenario_id"])
            if kinds is not None:
                turn = record["turn"]
                yield {**record, **_values(kinds[turn - 1], by_turn.get(turn))}
            else:
                yield {**record, **(_UNKNOWN if self.pressures else {})}


def _values(kind: str, response: Response | None) -> Record:
    """Return the values of a turn; of one without a response the state is unknown."""
    state, facts = (State.UNKNOWN, None) if response is None else _judged(response)
    return {
        "pressure": kind,
        "fidelity": state.value,
        "fidelity_questions": facts and facts.questions,
        "fidelity_told": facts and facts.told,
        "fidelity_speaks": facts and _YES_OR_NO[facts.speaks],
        "fidelity_key": facts and _YES_OR_NO[facts.says_key],
    }


def _judged(response: Response) -> tuple[State, Facts | None]:
    return state_and_facts(
        Exchange(
            response.text,
            student_message=response.student_message,
            status=response.status,
            key=response.answer_key,
        )
    )
