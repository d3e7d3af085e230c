"""What tests read on the research page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.dashboard.browser import DESKTOP, PHONE
from tests.waiting import PATIENCE, until

if TYPE_CHECKING:
    from playwright.async_api import Page

MODEL_ROWS = "tr.row:not(.baseline)"
SCREENS = pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])

RUNNING_MS, AWAY_MS, RESTING_MS = 2_000, 5_000, 15_000
"""Milliseconds between two looks of the page at the API, as the page has them."""


async def rows_of(page: Page) -> list[dict[str, Any]]:
    """The rows of the models, without that of the baseline."""
    await page.locator(MODEL_ROWS).first.wait_for(state="attached")
    rows: list[dict[str, Any]] = await page.locator(MODEL_ROWS).evaluate_all(
        """rows => rows.map(row => ({
            model: row.dataset.model,
            name: row.querySelector("button").textContent,
            about: row.querySelector("small").textContent,
            score: row.querySelector("td.score").textContent,
            remark: row.querySelector("td.interval small").textContent,
            hollow: row.querySelector("circle").classList.contains("reference"),
            shown: !row.hidden,
        }))"""
    )
    return rows


async def models_at(address: str) -> list[dict[str, Any]]:
    """The models as the API gives them."""
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
        answer = await client.get("/api/model-comparison")
    models: list[dict[str, Any]] = answer.json()["models"]
    return models


async def width_of(page: Page) -> int:
    return int(await page.evaluate("document.documentElement.scrollWidth"))


async def wind_on(
    page: Page, seen: Callable[[], Awaitable[bool]], what: str, *, milliseconds: int = RESTING_MS
) -> None:
    """Let so much time pass in the page, again and again until this is seen."""

    async def look() -> bool:
        await page.clock.fast_forward(milliseconds)
        return await seen()

    await until(look, bool, what)
