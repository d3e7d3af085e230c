"""The validity report: what is compared, with what, and how a page shows it."""

import hashlib
import re
from itertools import product

import pytest

from socratic_bench import score
from socratic_bench.errors import InvalidInput
from socratic_bench.research.agreement_measures import best_cut
from socratic_bench.research.building import validity_report
from socratic_bench.research.columns import ProfileColumns
from socratic_bench.research.labelled import read_set
from socratic_bench.research.validity_report import Paired, validity_page
from socratic_bench.scoring.exchange import EarlierTurn
from tests.unit.validity.labelled_sets import ASKED, TOLD, encoded, labelled_set, line, lines

PROFILES = ("socratic-v1", "socratic-v2")


def v2(text, **given):
    return score(text, profile="socratic-v2", **given)


def report_of(*sets, profiles=PROFILES):
    return validity_report(sets, profiles, resamples=40, seed=1)


@pytest.fixture(scope="module")
def report():
    return report_of(labelled_set(), labelled_set("other", lines(12)))


def test_each_label_has_a_column_for_each_profile_each_vector_and_each_judge(report):
    names = [each.column for each in report.labels[0].columns]
    assert names[:4] == [
        f"socratic-v1 {name}" for name in ("overall", "verbosity", "exploratory", "interrogative")
    ]
    assert names[-1] == "judge-7b"
    assert len(names) == 4 + 14 + 5 + 1
    guards = ("inquiry", "restraint", "solo", "grounding", "form without grounding")
    assert names[-6:-1] == [f"socratic-v2 {name}" for name in guards]
    assert report.labels[0].best_judge == "judge-7b"


def test_a_profile_is_behind_a_judge_that_is_always_right_and_the_table_says_so(report):
    judge = report.labels[0].column("judge-7b")
    assert (judge.auc, judge.kappa, judge.cuts) == (1.0, 1.0, (2.0, 2.0))
    mine = report.labels[0].column("socratic-v2 overall")
    against = next(pair for pair in mine.differences if pair.other == "judge-7b")
    assert against.difference == pytest.approx(mine.auc - 1.0)
    assert against.verdict == "loss"
    assert 'class="loss"' in validity_page(report)


@pytest.mark.parametrize(
    ("difference", "interval", "verdict"),
    [
        (0.1, (0.05, 0.2), "ahead"),
        (-0.1, (-0.2, -0.05), "loss"),
        (0.1, (-0.1, 0.3), "may be chance"),
        (0.1, None, "may be chance"),
    ],
)
def test_a_difference_is_ahead_or_a_loss_where_its_interval_leaves_zero_out(
    difference, interval, verdict
):
    assert Paired(other="x", difference=difference, interval=interval).verdict == verdict


def test_the_figures_are_those_of_their_definitions(report):
    """AUC by pairs, kappa by the cut of the other half, and a grounded form by its guard."""
    records = lines()
    overall = {
        text: v2(text, student_message=records[0]["student_message"])["overall"] or 0.0
        for text in (ASKED, TOLD)
    }
    figures = [overall[each["text"]] for each in records]
    labels = [each["labels"]["asks"] for each in records]
    above = [figure for figure, label in zip(figures, labels, strict=True) if label]
    below = [figure for figure, label in zip(figures, labels, strict=True) if not label]
    won = sum((one > other) + (one == other) / 2 for one, other in product(above, below))
    mine = report.labels[0].column("socratic-v2 overall")
    assert mine.auc == pytest.approx(won / len(above) / len(below), abs=1e-12)

    halves = [hashlib.sha256(each["group"].encode()).digest()[-1] % 2 for each in records]
    assert mine.cuts == tuple(
        best_cut(
            [f for f, h in zip(figures, halves, strict=True) if h != half],
            [label for label, h in zip(labels, halves, strict=True) if h != half],
        )
        for half in (0, 1)
    )


def test_few_groups_have_no_verdict_and_fewer_no_interval():
    def figures(groups):
        records = [{**line(n, n % 3 > 0), "group": f"g{n % groups}"} for n in range(24)]
        [label] = report_of(labelled_set("mine", records)).labels
        mine = label.column("socratic-v2 overall")
        return mine.interval, mine.differences[0].verdict

    interval, verdict = figures(4)
    assert (interval, verdict) == (None, "too few groups to tell")
    interval, verdict = figures(9)
    assert interval is not None
    assert verdict == "too few groups to tell"
    assert figures(10)[1] in {"ahead", "loss", "may be chance"}


def test_a_misspelt_field_is_a_mistake_with_a_suggestion_and_equal_ones_are_told_once():
    records = [{**line(n, n % 2 > 0), "student_mesage": "Why?"} for n in range(3)]
    found = read_set("mine", "mine.jsonl", encoded([*records, *lines(4)]))
    assert found.problems == (
        "mine.jsonl, lines 1 to 3: student_mesage: unknown field; did you mean `student_message`?",
    )
    with pytest.raises(InvalidInput, match="did you mean `student_message`"):
        read_set("mine", "mine.jsonl", encoded(records))


def test_a_dialogue_has_the_means_of_its_tutors_turns():
    student, reply = "I added 12 and 5 and got 18.", "Just tell me."
    messages = [
        ("system", "Be kind."),
        ("user", student),
        ("assistant", ASKED),
        ("user", reply),
        ("tutor", TOLD),
    ]
    dialogue = {
        "messages": [{"role": role, "content": text} for role, text in messages],
        "labels": {"asks": 1},
        "group": "d",
    }
    [found] = labelled_set("mine", [dialogue]).responses
    columns = ProfileColumns("socratic-v2", [found])
    first = v2(ASKED, student_message=student)
    second = v2(TOLD, student_message=reply, earlier_turns=[EarlierTurn(student, ASKED)])
    for vector in ("overall", "ground", "asking"):
        [figure] = columns.column(vector)
        assert figure == pytest.approx(
            ((first[vector] or 0) + (second[vector] or 0)) / 2, abs=1e-12
        )
    [form] = columns.columns()["socratic-v2 form without grounding"]
    assert form == columns.column("overall")[0], "both turns are grounded"


def test_guards_are_those_of_the_text_that_is_scored():
    [plain] = labelled_set("mine", [line(1, True)]).responses
    thought = plain.model_copy(update={"text": f"<think>The answer is 17.</think>{plain.text}"})
    one, other = (ProfileColumns("socratic-v2", [each]).columns() for each in (plain, thought))
    assert one == other


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"messages": [{"role": "user", "content": "Why?"}]}, "no message of the dialogue"),
        ({"messages": [{"role": "tutor", "content": "Why?"}], "text": "Why?"}, "one of both"),
        ({}, "needs `text`, or the `messages` of a dialogue"),
    ],
)
def test_a_line_is_a_response_or_a_dialogue(wrong, told):
    with pytest.raises(InvalidInput, match=told):
        labelled_set("mine", [{"labels": {"asks": 1}, "group": "g", **wrong}])


def test_the_data_says_which_column_is_meant_for_a_label():
    records = [{**lines()[0], "columns": {"asks": "closing"}}, *lines()[1:]]
    [label] = report_of(labelled_set("mine", records)).labels
    assert label.dimension == "socratic-v2 closing"
    other = {**lines()[1], "columns": {"asks": "guide"}}
    found = labelled_set("mine", [records[0], other])
    assert found.problems == (
        "mine.jsonl, line 2: columns.asks: must be 'closing', as before, not 'guide'",
    )
    records[0]["columns"] = {"asks": "closeness"}
    with pytest.raises(InvalidInput, match=r"columns.asks: socratic-v2 has no column 'closeness'"):
        report_of(labelled_set("mine", records))


def test_ablation_leaves_out_one_vector_at_a_time_and_those_that_the_overall_leaves_out(report):
    found = {(each.profile, each.vector) for each in report.labels[0].ablation}
    assert ("socratic-v1", "verbosity") in found
    assert ("socratic-v2", "asking") in found
    assert not any(vector in {"ground", "form", "guide"} for _, vector in found)


def test_the_short_form_keeps_overalls_meant_columns_and_the_best_llm_judge(report):
    short = report.summary()
    assert [each.column for each in short.labels[0].columns] == [
        *("socratic-v1 overall", "socratic-v2 overall", "judge-7b"),
    ]
    assert short.labels[0].column("judge-7b") == report.labels[0].column("judge-7b")
    assert "In one table" in validity_page(short)


def test_the_same_seed_gives_the_same_report(report):
    assert report_of(labelled_set(), labelled_set("other", lines(12))) == report


def test_a_constant_reply_and_gaming_stand_beside_the_figures(report):
    constant = {each.profile: each for each in report.constant if each.data == "mine"}
    assert constant["socratic-v2"].constant == pytest.approx(0.4)
    assert 0.0 < constant["socratic-v2"].beaten < 1.0
    assert {each.reply: each.is_solved for each in report.gaming}["constant reply"]


def test_a_response_without_text_is_counted_and_left_out():
    blank = {**line(1, True), "text": " "}
    found = report_of(labelled_set("mine", [*lines(), blank]))
    assert found.data[0].unscored == 1
    assert found.labels[0].column("socratic-v2 overall").n == found.labels[0].n - 1


def test_a_bad_line_is_named_with_its_place_and_the_rest_goes_on():
    wrong = {**line(2, True), "labels": {"asks": 2}}
    given = [*encoded([line(1, True)]), b"{\n", *encoded([wrong]), b"\n", *encoded([line(4, True)])]
    found = read_set("mine", "mine.jsonl", given)
    assert len(found.responses) == 2
    first, second = found.problems
    assert first.startswith("mine.jsonl, line 2: is not JSON")
    assert second == "mine.jsonl, line 3: labels.asks: must be 0 or 1"
    assert found.problems[1] in validity_page(report_of(found))


def test_a_file_without_any_labelled_response_is_refused():
    with pytest.raises(InvalidInput, match=r"mine.jsonl: the file has no labelled response"):
        read_set("mine", "mine.jsonl", [b"{}\n"])


def test_two_sets_of_one_name_are_refused():
    with pytest.raises(InvalidInput, match="each data set needs a name of its own"):
        report_of(labelled_set(), labelled_set())


def test_text_of_the_data_is_no_markup_on_the_page():
    hostile = "<script>alert(1)</script>"
    record = {"labels": {hostile: 1}, "tutor": hostile, "judges": {hostile: {hostile: 1}}}
    other = {**record, "labels": {hostile: 0}}
    records = [line(1, True, **record), line(2, False, **other)]
    page = validity_page(report_of(labelled_set(hostile, records)))
    assert hostile not in page
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert not re.search(r"https?://|url\(|style=", page)
    assert "default-src 'none'" in page
