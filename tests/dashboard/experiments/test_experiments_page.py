"""The page of experiments: live, and with what a person may do there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from socratic_api.settings import ApiSettings
from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.consuming.queues import BROADCASTS, JUDGE_RESPONSE_RECORDED, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment, StopWhen, TutorModel
from socratic_bench.domain.provider_batch import ProviderBatch
from socratic_bench.events.codec import Message
from tests.contract.store.facts import claim_of
from tests.dashboard.conftest import PHONE, Visit, serving
from tests.dashboard.research_page import width_of
from tests.dashboard.seeding import experiment, seed, tutors

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]
KEY = "a-key-for-writing"
SCRIPT = "<img src=x onerror=\"document.title='owned'\"><script>alert(1)</script>"


@asynccontextmanager
async def with_broker(store: SqlStore, **given: Any) -> AsyncIterator[tuple[str, MemoryBroker]]:
    """The address of an API with a broker, and that broker."""
    broker = MemoryBroker(max_waiting=10_000)
    await broker.declare(WORK_QUEUES, BROADCASTS)
    settings = ApiSettings(**{"freshness_ms": 0, "drain_deadline": 0, **given})
    try:
        async with serving(store, settings=settings, broker=broker) as address:
            yield address, broker
    finally:
        await broker.close()


async def told(page: Page, selector: str, text: str) -> None:
    """Wait until an element says this."""
    await page.locator(selector).filter(has_text=text).first.wait_for()


_HELD = "navigator.locks.query().then(({held}) => held.length === %d)"
_SEEN = """([seen]) => {
  Object.defineProperty(document, "hidden", {value: !seen, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.mark.parametrize("events", ["come", "none", "kept back by a proxy"])
async def test_an_experiment_in_detail_changes_in_place_while_it_runs(
    store: SqlStore, visit: Visit, events: str
):
    planned = experiment(tutors(3), created_at=datetime.now(UTC))
    await seed(store, planned, share=0.5, failing=0.2)
    page = await visit("/methodology.html", clock=events != "come")
    await page.route("**/events", lambda route: route.continue_() if events == "come" else None)
    if events == "none":
        abilities = {"starts": True, "changes": True, "streams": False, "needs_key": False}
        await page.route("**/api/capabilities", lambda route: route.fulfill(json=abilities))
    await page.goto(
        page.url.replace("methodology.html", f"experiments.html?experiment={planned.experiment_id}")
    )
    await told(page, "#summary", "68 of 135 runs are done (50 %). 67 are left.")
    await page.evaluate("document.querySelector('#models tbody tr').kept = true")
    await told(page, "#models .wrong", "rate_limited")
    if events == "come":
        for seen, held in ((True, 1), (False, 0), (True, 1)):
            await page.evaluate(_SEEN, [seen])
            await page.wait_for_function(_HELD % held)

    await seed(store, planned, failing=0.2)
    if events != "come":
        await page.clock.run_for(21_000 if events != "none" else 5_000)

    await told(page, "#summary", "135 of 135 runs are done (100 %).")
    await told(page, "#detail-state", "Complete.")
    assert await page.evaluate("document.querySelector('#models tbody tr').kept")
    assert await page.locator("#controls [data-state]:visible").count() == 0
    await page.wait_for_function(_HELD % 0)


async def test_the_detail_says_what_repeats_can_do_and_which_batch_is_waited_for(
    store: SqlStore, visit: Visit
):
    model = TutorModel(id="openai/gpt-x", options={"batch": True})
    changes = {"models": (*tutors(2), model), "stop_when": StopWhen(interval=0.2)}
    manifest = experiment(tutors(2), repeats=4).manifest.model_copy(update=changes)
    planned = Experiment(manifest=manifest, created_at=datetime.now(UTC))
    await seed(store, planned, share=0.5)
    waiting = next(run for run in planned.runs(3) if run.model_id == model.id)
    batch = ProviderBatch.new(model.id, planned.created_at)
    await store.take_leases([claim_of(waiting, batch.entry(0))], batch.owner)

    page = await visit(f"/experiments.html?experiment={planned.experiment_id}")

    await told(page, "#detail-facts", "after 2 of 4 repeats")
    await told(page, "#detail-facts", f"openai/gpt-x: 1 turn waits in batch {batch.name} since")


async def test_the_list_names_states_and_leads_to_the_detail(store: SqlStore, visit: Visit):
    await seed(store, experiment(tutors(2), occasion="2026-W10"))
    await seed(store, experiment(tutors(3), occasion="2026-W11"), share=0.5)
    page = await visit("/experiments.html")
    await told(page, "#summary", "1 past the deadline, 1 complete.")

    await page.get_by_role("link", name="2026-W11").click()

    await told(page, "h1", "2026-W11")
    await told(page, "#detail-state", "Past the deadline.")
    await told(page, "#pending-runs td", "an answer of the model")
    assert await page.locator("#pending-runs tbody tr").count() > 50, (
        "stuck runs stand there by name"
    )


async def test_one_is_started_from_the_page_and_mistakes_stand_at_their_lines(
    store: SqlStore, visit: Visit
):
    async with with_broker(store) as (address, broker):
        page = await visit("/experiments.html", origin=address, quiet=False)
        await page.fill("#config", '{\n  "models": ["nobody/a"],\n  "repeat": 2\n}')
        await page.click("#submit")
        await told(page, "#mistakes", "2 mistakes: nothing was started.")
        await page.get_by_role("button", name="line 3, repeat").click()
        chosen = await page.evaluate(
            "(({value, selectionStart, selectionEnd}) => value.slice(selectionStart, selectionEnd))"
            "(document.getElementById('config'))"
        )
        await page.fill("#config", json.dumps({"models": ["reference/socratic"], "name": SCRIPT}))
        await page.click("#submit")
        await told(page, "#summary", "0 of 45 runs are done")
        title = await page.locator("h1").inner_text()

    assert chosen == '  "repeat": 2'
    assert title == SCRIPT, "a name is text"
    assert await page.locator("main img, main script").count() == 0
    assert broker.outstanding == 45


async def test_a_key_is_asked_for_and_the_experiment_paused_resumed_and_deleted(
    store: SqlStore, visit: Visit
):
    planned = experiment(tutors(2))
    await seed(store, planned, share=0.5)
    async with with_broker(store, api_keys=(KEY,)) as (address, _):
        path = f"/experiments.html?experiment={planned.experiment_id}"
        page = await visit(path, origin=address, quiet=False)
        await page.get_by_role("button", name="Pause").click()
        await told(page, "#control-told", "this needs a key")
        await page.locator("#controls .key").fill(KEY)
        await page.get_by_role("button", name="Pause").click()
        await told(page, "#detail-state", "Paused.")
        await page.get_by_role("button", name="Resume").click()
        await told(page, "#detail-state", "Past the deadline.")
        page.on("dialog", lambda dialog: dialog.accept())
        await page.get_by_role("button", name="Delete").click()
        await page.locator("#empty").wait_for()
        kept = await page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")

    assert await store.outlines() == []
    assert KEY not in kept + page.url


async def test_dead_letters_are_shown_with_their_reasons_and_put_back(
    store: SqlStore, visit: Visit
):
    queue = JUDGE_RESPONSE_RECORDED
    async with with_broker(store) as (address, broker):
        await broker.publish([Message(id="m-1", type=queue.event_type, group="a/b", body=b"")])
        async with broker.consume(queue.name, prefetch=1) as consumer:
            [delivery] = await consumer.receive(1)
            await consumer.reject(delivery, SCRIPT)
        page = await visit("/experiments.html", origin=address)
        await told(page, "#dead-letters-told", "1 message that no service could handle.")
        reason = await page.locator("#dead-letters tbody td").last.inner_text()
        await page.get_by_role("button", name="Put back").click()
        await told(page, "#dead-letters-told", f"1 message went back into {queue.name}.")
        waiting = await broker.depth(queue.name)
        await page.close()  # it asks again in a second, when nobody answers any more

    assert reason == SCRIPT
    assert waiting == 1


async def test_without_a_broker_the_page_says_what_it_does_not_know(store: SqlStore, visit: Visit):
    page = await visit("/experiments.html", quiet=False)
    await told(page, "#starts-none", "socratic-bench submit")
    assert not await page.locator("#config").is_visible()


async def test_a_page_whose_events_are_refused_polls_and_shows_a_change_at_once(
    store: SqlStore, visit: Visit
):
    planned = experiment(tutors(2))
    await seed(store, planned, share=0.5)
    async with with_broker(store) as (address, _):
        page = await visit("/methodology.html", origin=address, quiet=False, clock=True)
        await page.route("**/events", lambda route: route.fulfill(status=503, json={}))
        await page.goto(f"{address}/experiments.html?experiment={planned.experiment_id}")
        await told(page, "#detail-state", "Past the deadline.")
        await page.get_by_role("button", name="Pause").click()
        await told(page, "#detail-state", "Paused.")


async def test_an_api_that_only_reads_offers_no_change(store: SqlStore, visit: Visit):
    planned = experiment(tutors(2))
    await seed(store, planned, share=0.5)
    page = await visit("/methodology.html")
    abilities = {"starts": False, "changes": False, "streams": True, "needs_key": True}
    await page.route("**/api/capabilities", lambda route: route.fulfill(json=abilities))
    await page.goto(
        page.url.replace("methodology.html", f"experiments.html?experiment={planned.experiment_id}")
    )
    await told(page, "#detail-state", "Past the deadline.")
    await page.get_by_role("link", name="Its ranking").wait_for()

    assert await page.get_by_role("button", name="Pause").count() == 0
    assert not await page.locator("#controls .key").is_visible()


async def test_the_page_fits_a_phone(store: SqlStore, visit: Visit):
    planned = experiment(tutors(3), occasion="w" * 80)
    await seed(store, planned, share=0.5, failing=0.2)
    for path in ("/experiments.html", f"/experiments.html?experiment={planned.experiment_id}"):
        page = await visit(path, viewport=PHONE)
        await page.locator(".stacked tbody tr:visible").first.wait_for()
        assert await width_of(page) == PHONE["width"]
