"""The function of the how-to for entry points scores a batch as the page says."""

import re
from pathlib import Path

from socratic_bench.events.codec import decode, encode
from tests.unit.events.examples import PLANNED, example_events

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "add-an-entry-point.md"


async def test_the_function_publishes_scores_and_returns_only_the_records_that_failed():
    [snippet] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    code: dict = {}
    exec(compile(snippet, str(PAGE), "exec"), code)
    published = []

    async def publish(messages):
        published.extend(decode(message.body) for message in messages)

    example = example_events()["response.recorded"]
    response = example.data.model_copy(update={"run": PLANNED})
    recorded = example.model_copy(update={"data": response})
    records = {"no event": b"{", "fine": encode(recorded)}
    assert await code["score_batch"](records, publish) == ["no event"]
    [scored] = published
    assert (scored.type, scored.causationid) == (
        "org.socratic-bench.response.scored.v1",
        recorded.id,
    )
    assert scored.data.vectors
