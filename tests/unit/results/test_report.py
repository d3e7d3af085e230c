"""The report of an experiment: one page whose texts are data and whose origin is told."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import UnknownExperiment
from socratic_bench.research.agreement import (
    NO_CALLS,
    DifferenceLimits,
    FigureAgreement,
    ProfileAgreement,
)
from socratic_bench.research.agreement_page import agreement_page
from socratic_bench.results.fidelity.fidelity import fidelity
from socratic_bench.results.fidelity.text_formats import (
    cells_of,
    fidelity_sentences,
    shown_columns,
)
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from socratic_bench.results.pages import bibtex, report_page
from socratic_bench.version import __version__
from tests.contract.store.facts import a_score
from tests.dashboard.pressed_runs import TWO, filled
from tests.dashboard.pressed_runs import planned as pressed
from tests.dashboard.seeding import MONDAY, experiment, seed, tutors

HOSTILE = "<script>alert(1)</script>\u202e\x00\" onload='x' &amp; {{ 7 * 7 }}"
INERT = {"html", "head", "meta", "title", "style", "body", "main", "footer", "h1", "h2", "p"} | {
    *("div", "table", "caption", "thead", "tbody", "tr", "th", "td"),
    *("svg", "line", "circle", "dl", "dt", "dd", "pre", "details", "summary"),
}


class Page(HTMLParser):
    """The elements, the attributes and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.values: set[str | None] = set()
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.values.update(value for _, value in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


async def test_the_figures_are_those_of_the_leaderboard(store: MemoryStore) -> None:
    planned = experiment(tutors(2))
    await seed(store, planned)

    page = Page(await report_page(store, planned.experiment_id))
    comparison = await model_comparison(store, planned.experiment_id)

    for model in comparison.models:
        assert model.overall_score is not None
        assert model.model_name in page.text
        assert f"{model.overall_score:.2f}" in page.text


async def test_the_page_tells_its_origin(store: MemoryStore) -> None:
    planned = experiment(tutors(2))
    await seed(store, planned)

    text = Page(await report_page(store, planned.experiment_id)).text

    summary = (await model_comparison(store, planned.experiment_id)).experiments[0]
    for origin in (
        planned.experiment_id,
        summary.manifest_id,
        summary.conditions_id,
        "socratic-v1",
        __version__,
    ):
        assert text.count(origin) >= 2, origin  # among the conditions and in the citation
    assert "@misc{" in text


async def test_the_policy_allows_the_style_of_the_page(store: MemoryStore) -> None:
    planned = experiment(tutors(2))
    await seed(store, planned)

    page = await report_page(store, planned.experiment_id)

    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in page


async def test_an_experiment_under_pressure_has_the_fidelity_table_and_its_curves(
    store: MemoryStore,
) -> None:
    models = {"p/<b>": TWO["p/breaks"], "p/keeps": ["....", "..?."]}
    planned = await filled(store, models)

    written = await report_page(store, planned.experiment_id)
    page, table = Page(written), await fidelity(store, planned.experiment_id)

    assert "by fidelity-1, best first" in page.text
    for sentence in fidelity_sentences(table):
        assert sentence in page.text
    assert "p/keeps lost 50 % of its runs" in page.text
    columns = shown_columns(table)
    for model in table.models:
        cells = [html.escape(each) for each in cells_of(columns, model)]
        row = "".join(f"<td>{each}</td>" for each in cells[1:])
        assert f'<tr><th scope="row">{cells[0]}</th>{row}</tr>' in written
    keeps, breaks = re.findall(r'class="stairs" d="([^"]*)"', written)
    # LL.. and .LL. of three turns that can break: a half after turn 1, none after turn 2.
    assert breaks == "M34 60.0H107.3V110.0H180.7V110.0H254.0"
    assert keeps == "M34 10.0H107.3V10.0H180.7V10.0H254.0"
    assert written.count('class="band"') == 2
    assert page.tags <= INERT | {"figure", "figcaption", "path", "text"}


async def test_few_scripts_have_no_interval_in_a_report(store: MemoryStore) -> None:
    planned = await filled(store, TWO, scenarios=4)

    written = await report_page(store, planned.experiment_id)

    assert "An interval needs 5 scenarios; there are 4." in written
    assert 'class="stairs"' in written
    assert 'class="band"' not in written


async def test_a_rescored_experiment_under_pressure_has_the_table_beside_its_own_profile(
    store: MemoryStore,
) -> None:
    manifest = pressed(TWO).manifest.model_copy(update={"profile": "socratic-v1"})
    planned = Experiment(manifest=manifest, created_at=MONDAY)
    await store.register(planned)
    await store.fold([a_score(run) for run in planned.runs()], [])
    before = await report_page(store, planned.experiment_id)
    await store.fold([a_score(run, profile="fidelity-1") for run in planned.runs()], [])
    after = await report_page(store, planned.experiment_id)

    assert "Turns kept" not in before
    assert "by fidelity-1, best first" in after
    assert "<dt>profile</dt><dd>socratic-v1</dd>" in after


async def test_other_experiments_have_no_table_of_turns_kept(store: MemoryStore) -> None:
    planned = experiment(tutors(2))
    await seed(store, planned)

    assert "Turns kept" not in await report_page(store, planned.experiment_id)


async def test_an_unknown_experiment_is_named(store: MemoryStore) -> None:
    with pytest.raises(UnknownExperiment, match="nonesuch"):
        await report_page(store, "nonesuch")


async def test_hostile_names_and_prompts_are_text(store: MemoryStore) -> None:
    manifest = Manifest(
        models=(TutorModel(id="reference/socratic", name=HOSTILE.replace("\x00", "")),),
        scenarios=(Scenario(id="one", dimension="ethical", prompt=HOSTILE.replace("\x00", "")),),
        repeats=1,
        notes="</pre></details><img src=x onerror=alert(1)>",
    )
    planned = Experiment(manifest=manifest, created_at=MONDAY)
    await store.register(planned)

    written = await report_page(store, planned.experiment_id)
    page = Page(written)

    assert page.tags <= INERT
    assert not {name for name in page.attributes if name.startswith("on")}
    assert page.attributes.isdisjoint({"src", "href"})
    assert page.text.count("{{ 7 * 7 }}") >= 3  # the name in tables, and the configuration
    assert "\u202e" not in written


@given(name=st.text(min_size=1))
def test_any_text_stays_text(name: str) -> None:
    limits = DifferenceLimits(mean=0.0, low=0.0, high=0.0)
    figures = FigureAgreement(
        name=name,
        pairs=1,
        first_mean=0.5,
        second_mean=0.5,
        spearman=None,
        concordance=None,
        kappa=None,
        difference=limits,
        points=((0.5, 0.5),),
    )
    agreement = ProfileAgreement(
        experiment_id="exp-1",
        title=None,
        first="a",
        second="b",
        responses=1,
        only_first=0,
        only_second=0,
        figures=(figures,),
        models=(),
        first_cost=NO_CALLS,
        second_cost=NO_CALLS,
    )

    plain = Page(agreement_page(agreement.model_copy(update={"title": "plain"})))
    page = Page(agreement_page(agreement.model_copy(update={"title": name})))

    shown = "\n".join(
        "".join(each if each.isprintable() else "\ufffd" for each in line)
        for line in name.split("\n")
    )
    assert (page.tags, page.attributes) == (plain.tags, plain.attributes)
    assert f"responses of {shown} (exp-1)?" in page.text
    assert f"socratic-bench-agreement-{shown}-exp-1.svg" in page.values


async def test_braces_of_a_bibtex_entry_pair_up(store: MemoryStore) -> None:
    manifest = experiment(tutors(1)).manifest.model_copy(update={"name": r"50% {of} \x_1"})
    planned = Experiment(manifest=manifest, created_at=datetime(2026, 3, 1, tzinfo=UTC))
    await store.register(planned)
    [summary] = (await model_comparison(store, planned.experiment_id)).experiments

    entry = bibtex(summary, summary.profile, ["Ada Lovelace", "Salt and {Pepper}"])

    bare = re.sub(r"\\[{}]", "", entry)
    assert bare.count("{") == bare.count("}")
    assert r"title = {50\% \{of\} \textbackslash{}x\_1}" in entry
    assert r"author = {Ada Lovelace and {Salt and \{Pepper\}}}" in entry
    assert "author = {{The Socratic Bench authors}}" in entry.partition("@software")[2]
    assert "year = {2026}" in entry
    assert "month = mar," in entry
