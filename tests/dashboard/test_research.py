"""The ranking page in a real browser."""

from __future__ import annotations

import asyncio
import csv
import math
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import TutorModel
from tests.contract.store.facts import a_score
from tests.dashboard.browser import DESKTOP, PHONE, Visit
from tests.dashboard.research_page import MODEL_ROWS, SCREENS, models_at, rows_of, width_of
from tests.dashboard.seeding import experiment, seed, tutors
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


@pytest.mark.parametrize("count", [2, 25, pytest.param(250, marks=pytest.mark.long)])
async def test_models_stand_best_first_and_the_page_does_not_scroll_sideways(
    store: SqlStore, address: str, visit: Visit, tmp_path: Path, count: int
):
    await seed(store, experiment(tutors(count)))
    expected = await models_at(address)
    for viewport in (DESKTOP, PHONE):
        page = await visit("/research.html", viewport=viewport)

        rows = await rows_of(page)
        await page.screenshot(path=tmp_path / "research.png")

        assert [row["model"] for row in rows] == [model["model_id"] for model in expected]
        assert [row["score"] for row in rows] == [f"{m['overall_score']:.2f}" for m in expected]
        assert await width_of(page) <= viewport["width"]
        assert f"{count * 45:,} runs" in await page.locator("#summary").inner_text()


@SCREENS
async def test_each_prompt_of_a_matrix_has_its_effect_below_the_ranking(
    store: SqlStore, address: str, visit: Visit, viewport: Any
):
    models = [TutorModel(id=f"provider/{name}") for name in ("a", "b")]
    cells = [model.under(prompt, prompt) for model in models for prompt in ("tell", "ask")]
    await seed(store, experiment(cells))
    page = await visit("/research.html", viewport=viewport)

    rows = page.locator("#prompt-effects tbody tr")
    await rows.first.wait_for()
    tell, ask = [await each.locator("th, td").all_inner_texts() for each in await rows.all()]
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
        told = (await client.get("/api/model-comparison")).json()["prompts"]
    assert (tell[0], tell[2:]) == ("tell", ["–", "–", "–"])
    assert (ask[0], ask[1]) == ("ask", f"{told[1]['overall']:.2f}")
    assert ask[2].lstrip("+\u2212") == f"{abs(told[1]['difference']):.2f}"
    assert "2 tutors and 15 scenarios" in await page.locator("#about-prompts").inner_text()
    assert await width_of(page) <= viewport["width"]


async def test_reference_tutors_are_marked_by_word_and_by_form(store: SqlStore, visit: Visit):
    await seed(store, experiment(tutors(5)))
    page = await visit("/")

    rows = await rows_of(page)

    for row in rows:
        is_reference = row["model"].startswith("reference/")
        assert row["hollow"] == is_reference
        assert ("reference" in row["about"]) == is_reference
    [socratic] = [row for row in rows if row["model"] == "reference/socratic"]
    assert socratic["about"] == "reference, latency of 200 ms simulated"


async def test_models_that_tie_with_the_leader_by_the_paired_tests_are_said_to(
    store: SqlStore, address: str, visit: Visit
):
    await seed(store, experiment(tutors(12)))
    page = await visit("/")
    models = await models_at(address)
    leader = next(model for model in models if model["kind"] == "model")
    tied = {
        model["model_id"]
        for model in models
        if model is not leader and (model["rank_interval"] or [2])[0] == 1
    }

    rows = await rows_of(page)

    assert {row["model"] for row in rows if row["remark"]} == tied
    finding = await page.locator("#finding").inner_text()
    assert leader["model_name"] in finding
    assert f"{leader['rank_interval'][1] - 1} others may be as good" in finding


async def test_models_whose_difference_may_be_chance_share_ranks_on_one_line(
    store: SqlStore, address: str, visit: Visit
):
    await seed(store, experiment(tutors(25)))
    page = await visit("/")
    await rows_of(page)
    between = {each["model_id"]: each["rank_interval"] for each in await models_at(address)}
    cells = await page.locator(MODEL_ROWS).evaluate_all(
        """rows => rows.map(row => {
            const cell = row.querySelector(".rank");
            const line = parseFloat(getComputedStyle(cell).lineHeight);
            const words = document.createRange();
            words.selectNodeContents(cell);
            const lines = words.getBoundingClientRect().height / line;
            return {model: row.dataset.model, text: cell.textContent, lines};
        })"""
    )

    assert any(ranks and ranks[0] < ranks[1] for ranks in between.values())
    for cell in cells:
        best, worst = between[cell["model"]] or (None, None)
        tied = "\u2013" if best is None else f"{best}\u2013{worst}"
        assert cell["text"] == (str(best) if best and best == worst else tied)
        assert cell["lines"] < 1.5


async def test_a_row_says_how_far_its_place_depends_on_the_weights(
    store: SqlStore, address: str, visit: Visit
):
    await seed(store, experiment(tutors(8)))
    page = await visit("/")
    models = await models_at(address)
    at, model = next(
        (at, each)
        for at, each in enumerate(models)
        if "other_weights" in each and each["other_weights"]["share_ahead"] < 0.95
    )
    weights = model["other_weights"]
    [name] = [each["model_name"] for each in models if each["model_id"] == weights["next_model"]]
    await page.locator(f"{MODEL_ROWS} button").nth(at).click()

    fact = page.locator("tr.detail:not([hidden]) .facts div", has_text="Other weights")
    told = (await fact.locator("dd").inner_text()).replace("\u2068", "").replace("\u2069", "")

    assert told.endswith(
        f"under 95 % of all weightings of the vectors and ahead of {name} under "
        f"{math.floor(100 * weights['share_ahead'])} % of them"
    )
    note = await page.locator("#note").inner_text()
    assert "The order depends on the weights of the vectors" in note


@SCREENS
async def test_a_row_opens_into_bars_as_wide_as_their_scores(
    store: SqlStore, address: str, visit: Visit, viewport: Any
):
    await seed(store, experiment(tutors(4)))
    page = await visit("/", viewport=viewport)
    await page.locator(f"{MODEL_ROWS} button").nth(1).click()

    detail = page.locator("tr.detail:not([hidden])")
    await detail.wait_for()
    groups = await detail.locator(".group").evaluate_all(
        """groups => {
            const width = node => node.getBoundingClientRect().width;
            const share = bar => width(bar) / width(bar.parentElement);
            return groups.map(group => ({
                title: group.querySelector("h2 span").textContent,
                widths: [...group.querySelectorAll(".bar")].map(share),
                about: group.querySelector(".about").textContent,
            }));
        }"""
    )

    model = (await models_at(address))[1]
    names = ("verbosity", "exploratory", "interrogative")
    assert [group["title"] for group in groups] == ["all dimensions", *model["dimensions"]]
    for group in groups[1:]:
        figures = model["dimensions"][group["title"]]
        assert group["widths"] == pytest.approx([figures[name] for name in names], abs=0.005)
        assert f"{figures['runs']} runs" in group["about"]
    assert await width_of(page) <= viewport["width"]


async def test_the_view_stands_in_the_address_and_is_found_there_again(
    store: SqlStore, address: str, visit: Visit
):
    await seed(store, experiment(tutors(12)))
    page = await visit("/")
    await rows_of(page)
    await page.locator("#filter").fill("tutor 7")
    await page.locator(f"{MODEL_ROWS}:not([hidden]) button").click()

    again = await visit(page.url.removeprefix(address))
    shown = [row["name"] for row in await rows_of(again) if row["shown"]]

    assert shown == ["Tutor 7"]
    assert await again.locator("tr.detail:not([hidden])").count() == 1


async def test_rows_open_by_keyboard_alone_and_say_so(store: SqlStore, visit: Visit):
    await seed(store, experiment(tutors(3)))
    page = await visit("/")
    button = page.locator(f"{MODEL_ROWS} button").first
    await button.focus()
    await page.keyboard.press("Enter")

    assert await button.get_attribute("aria-expanded") == "true"
    controlled = await button.get_attribute("aria-controls")
    assert await page.locator(f"#{controlled}").is_visible()
    await page.keyboard.press("Enter")
    assert await button.get_attribute("aria-expanded") == "false"
    assert await page.get_by_role("rowheader").count() == 4  # the last is the baseline
    assert await page.get_by_role("columnheader").count() == 8


async def test_markup_in_a_name_is_shown_as_text(store: SqlStore, visit: Visit):
    model = TutorModel(id="local/<b>bold</b>", name=HOSTILE)
    await seed(store, experiment((model, *tutors(2))))
    page = await visit("/?open=local/<b>bold</b>")

    names = [row["name"] for row in await rows_of(page)]

    assert HOSTILE in names
    assert await page.title() == "Ranking · Socratic Bench"
    assert await page.locator("main script, main img, main b").count() == 0


async def test_a_name_of_eighty_characters_widens_nothing(store: SqlStore, visit: Visit):
    model = TutorModel(id="local/" + "a-very-long-model-name-" * 5, name="W" * 80)
    await seed(store, experiment((model, *tutors(2))))
    page = await visit(f"/?open={model.id}", viewport=PHONE)

    await rows_of(page)

    assert await width_of(page) <= PHONE["width"]


async def test_dark_is_dark(store: SqlStore, visit: Visit, tmp_path: Path):
    await seed(store, experiment(tutors(3)))
    shades = {}
    for scheme in ("light", "dark"):
        page = await visit("/", color_scheme=scheme)
        await rows_of(page)
        await page.screenshot(path=tmp_path / f"{scheme}.png")
        colour = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        shades[scheme] = sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(",")))

    assert shades["dark"] < 150
    assert shades["light"] > 600


async def csv_of_the_command(folder: Path) -> bytes:
    """What `leaderboard --format csv` prints of the store of a test."""
    code = "from socratic_cli.cli import main; main()"
    words = ["leaderboard", "--format", "csv", "--store", f"sqlite:///{folder}/benchmark.db"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, *words, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0
    return printed


async def test_the_page_the_api_and_the_command_give_the_same_csv_byte_by_byte(
    store: SqlStore, address: str, visit: Visit, tmp_path: Path
):
    formula = TutorModel(id="local/formula", name='=1+1, "quoted"')
    await seed(store, experiment((formula, *tutors(3))))
    page = await visit("/", permissions=["clipboard-read", "clipboard-write"])
    await rows_of(page)
    async with page.expect_download() as downloading:
        await page.locator("#download").click()
    downloaded = await downloading.value
    await downloaded.save_as(tmp_path / "table.csv")
    await page.locator("#copy").click()
    await page.get_by_role("button", name="Copied").wait_for()

    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
        answer = await client.get("/api/model-comparison", params={"format": "csv"})
    assert downloaded.suggested_filename == "socratic-bench.csv"
    assert (tmp_path / "table.csv").read_bytes() == answer.content
    assert answer.content == await csv_of_the_command(tmp_path)
    assert await page.evaluate("navigator.clipboard.readText()") == answer.text
    lines = list(csv.DictReader(answer.text.splitlines()))
    models = await models_at(address)
    assert [line["model_id"] for line in lines] == [model["model_id"] for model in models]
    assert [float(line["overall"]) for line in lines] == [m["overall_score"] for m in models]


async def test_the_csv_of_a_page_is_that_of_the_experiment_it_shows(
    store: SqlStore, address: str, visit: Visit, tmp_path: Path
):
    first, second = experiment(tutors(2)), experiment(tutors(3), occasion="later")
    for each in (first, second):
        await seed(store, each)
    page = await visit(f"/?experiment={first.experiment_id}")
    await rows_of(page)
    async with page.expect_download() as downloading:
        await page.locator("#download").click()
    await (await downloading.value).save_as(tmp_path / "table.csv")

    query = {"format": "csv", "experiment": first.experiment_id}
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
        answer = await client.get("/api/model-comparison", params=query)
    assert (tmp_path / "table.csv").read_bytes() == answer.content
    assert second.experiment_id not in answer.text


async def test_a_vector_that_does_not_apply_is_said_to_and_has_no_bar(
    store: SqlStore, visit: Visit
):
    planned = experiment((TutorModel(id="local/partly"),), repeats=1)
    await store.register(planned)
    runs = planned.runs()
    without = {"verbosity": None, "exploratory": 0.5, "interrogative": 1.0}
    scores = [
        a_score(run).model_copy(update={"vectors": without, "overall": 0.75})
        if run.dimension == "ethical"
        else a_score(run)
        for run in runs
    ]
    await store.fold(scores, ())
    page = await visit("/?open=local/partly")
    await rows_of(page)

    bars = await page.locator("tr.detail:not([hidden]) .group").evaluate_all(
        """groups => Object.fromEntries(groups.map(group => [
            group.querySelector("h2 span").textContent,
            [...group.querySelectorAll(".vector-bar")].map(bar =>
                [...bar.querySelectorAll("dt, dd")].map(part => part.textContent).join("|")),
        ]))"""
    )
    assert bars["ethical"][0] == "verbosity|does not apply|"
    assert bars["all dimensions"][0].startswith("verbosity|does not apply to 5 of 15: 0.")
    assert "does not apply" not in "".join(bars["student"])


async def test_the_constant_reply_stands_last_without_a_rank(store: SqlStore, visit: Visit):
    await seed(store, experiment(tutors(4)))
    page = await visit("/")
    await rows_of(page)

    last = page.locator("tr.row").last

    assert await last.locator("button").inner_text() == "constant reply"
    assert await last.locator("td.rank").inner_text() == "\u2013"
    assert await last.locator("td.runs").inner_text() == "\u2013"
    assert await last.locator("td.score").inner_text() == "0.82"
    assert await last.locator(".tag").inner_text() == "baseline"


async def test_a_table_is_read_by_another_profile_that_stands_in_the_address(
    store: SqlStore, address: str, visit: Visit
):
    planned = experiment(tutors(3))
    await seed(store, planned)
    plain = await visit("/")
    await rows_of(plain)
    assert await plain.locator("#profile-choice").is_hidden()
    high = [a_score(run, profile="socratic-v2", overall=0.9) for run in planned.runs()]
    await store.fold(high, [])

    page = await visit("/")
    await rows_of(page)
    own = await page.locator("#profile").input_value()
    await page.locator("#profile").select_option("socratic-v2")
    await page.get_by_text("The scores are by socratic-v2").wait_for()
    again = await visit(page.url.removeprefix(address))
    await again.get_by_text("The scores are by socratic-v2").wait_for()
    await again.locator(f"{MODEL_ROWS} button").first.click()
    await again.locator("tr[data-scenario]").first.wait_for()

    assert own == "socratic-v1"
    assert "profile=socratic-v2" in page.url
    assert await again.locator("#profile").input_value() == "socratic-v2"
    assert "profile=socratic-v2" in (await again.locator("#download").get_attribute("href") or "")
    assert "0.90" in await again.locator("tr[data-scenario]").first.inner_text()
