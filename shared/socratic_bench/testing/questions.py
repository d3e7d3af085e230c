"""Questions from the default pack, as a runner puts them to a model."""

from __future__ import annotations

from socratic_bench.domain.experiment.manifest import DEFAULT_SYSTEM_PROMPT, Parameters
from socratic_bench.domain.identifiers import run_id, sampling_seed
from socratic_bench.domain.run import Run
from socratic_bench.domain.scenario import Scenario
from socratic_bench.planning.config_file.scenario_selection import load_pack
from socratic_bench.ports.models import Question
from socratic_bench.scoring.exchange import EarlierTurn

EARLIER = EarlierTurn(student="I am stuck.", tutor="Where did it last go well?")


def a_question(
    scenario: Scenario | None = None,
    *,
    repeat: int = 1,
    turn: int = 1,
    model_id: str = "provider/model",
    parameters: Parameters | None = None,
) -> Question:
    """One turn of a run; turns after the first have earlier ones."""
    scenario = scenario or load_pack()[0]
    run = run_id("exp-0123456789abcdef", model_id, scenario.id, repeat)
    return Question(
        run=Run(
            run_id=run,
            experiment_id="exp-0123456789abcdef",
            model_id=model_id,
            scenario_id=scenario.id,
            dimension=scenario.dimension,
            repeat=repeat,
        ),
        turn=turn,
        system_prompt=DEFAULT_SYSTEM_PROMPT,
        student_message=scenario.prompt,
        earlier_turns=(EARLIER,) * (turn - 1),
        parameters=parameters or Parameters(),
        seed=sampling_seed(f"{model_id}/{scenario.id}", repeat, turn),
    )


def pack_questions(repeats: int = 3, *, turn: int = 1) -> list[Question]:
    """One turn of every run of the default pack."""
    return [
        a_question(scenario, repeat=repeat, turn=turn)
        for scenario in load_pack()
        for repeat in range(1, repeats + 1)
    ]
