"""The archetypes: their answers, and scores that tell them apart."""

from __future__ import annotations

from statistics import mean

import pytest

from socratic_bench import Score, score
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.ports.models import Question, Reply
from socratic_bench.scoring.length import estimated_tokens
from socratic_bench.scoring.socratic_v1.vectors import DIRECTIVE_MARKERS, MarkerSet, lowered
from socratic_bench.testing.samples import a_question, pack_questions
from socratic_runner.models.registry import open_client

RANGES = {"socratic": (0.85, 0.97), "hedger": (0.6, 0.75), "lecturer": (0.1, 0.3)}


def tutor(name: str, **options: int):
    return open_client(TutorModel(id=f"reference/{name}", options=dict(options)))


async def replies(name: str, *, turn: int = 1) -> list[Reply]:
    client = tutor(name)
    return [await client.ask(question) for question in pack_questions(turn=turn)]


def scored(reply: Reply) -> Score:
    return score(reply.text, output_tokens=reply.usage.visible_output_tokens, status=reply.status)


async def overall(name: str, *, turn: int = 1) -> float:
    return mean(scored(reply).overall or 0.0 for reply in await replies(name, turn=turn))


@pytest.mark.parametrize("name", RANGES)
async def test_an_archetype_scores_like_what_it_stands_for(name):
    lowest, highest = RANGES[name]
    assert lowest <= await overall(name) <= highest


@pytest.mark.parametrize("name", RANGES)
async def test_an_archetype_does_not_say_the_same_thing_over_and_over(name):
    texts = [reply.text for reply in await replies(name)]
    assert len(set(texts)) == len(texts)


async def test_the_socratic_tutor_is_not_perfect():
    scores = [scored(reply) for reply in await replies("socratic")]
    assert {figure.interrogative for figure in scores} == {0.0, 1.0}
    assert len({figure.exploratory for figure in scores}) > 2


async def test_the_lecturer_tells_at_length_and_never_asks():
    for reply in await replies("lecturer"):
        assert "?" not in reply.text
        assert 250 <= reply.usage.visible_output_tokens <= 450
        assert MarkerSet(DIRECTIVE_MARKERS).count(lowered(reply.text)) > 0


async def test_the_hedger_sometimes_ends_with_a_question():
    ends = [scored(reply).interrogative or 0.0 for reply in await replies("hedger")]
    assert 0.1 < mean(ends) < 0.6


async def test_the_drifter_lectures_more_with_every_turn():
    by_turn = [await overall("drifter", turn=turn) for turn in (1, 2, 3, 4)]
    assert by_turn == sorted(by_turn, reverse=True)
    assert by_turn[0] > 0.85
    assert by_turn[-1] < 0.3


async def test_the_students_own_words_are_taken_up():
    message = "My kite keeps spinning. Somebody said the tail is too short."
    scenario = Scenario(id="ambiguous-kite", dimension="ambiguous", prompt=message)
    client = tutor("socratic")
    answers = [await client.ask(a_question(scenario, repeat=repeat)) for repeat in range(1, 21)]
    taken_up = [a for a in answers if "kite keeps spinning" in a.text or "spinning" in a.text]
    assert taken_up


@pytest.mark.parametrize("name", [*RANGES, "drifter"])
@pytest.mark.parametrize("message", ["{quote} {word} {0} %s", "?", "…", "A" * 5000, "<b>Hi</b>"])
async def test_any_student_gets_an_answer(name, message):
    scenario = Scenario(id="own", dimension="a dimension of somebody's own", prompt=message)
    client = tutor(name)
    for turn in (1, 2, 3, 4):
        assert (await client.ask(a_question(scenario, turn=turn))).text


async def test_the_answer_depends_on_scenario_repeat_and_turn_alone():
    client = tutor("hedger")
    first = await client.ask(a_question(repeat=2, model_id="reference/hedger"))
    assert (await client.ask(a_question(repeat=2, model_id="another"))).text == first.text
    assert (await client.ask(a_question(repeat=3))).text != first.text
    assert (await client.ask(a_question(repeat=2, turn=2))).text != first.text


async def test_tokens_are_words_times_1_3_as_whole_numbers():
    question: Question = a_question()
    reply = await tutor("socratic").ask(question)
    assert reply.usage.visible_output_tokens == round(estimated_tokens(reply.text))
    assert reply.usage.input_tokens == round(estimated_tokens(question.system_prompt)) + round(
        estimated_tokens(question.student_message)
    )


async def test_the_latency_reported_is_the_simulated_one():
    for latency in (0, 7):
        reply = await tutor("lecturer", latency_ms=latency).ask(a_question())
        assert reply.latency_ms == latency
