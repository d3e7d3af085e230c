"""Benchmarks tutors from Python. A notebook writes `await main()` instead of the last two lines."""

import asyncio

from socratic_cli import run

CONFIG = {
    "models": ["reference/socratic", "reference/lecturer"],
    "scenarios": ["student-bigger-fraction", "student-empty-lines"],
    "repeats": 2,
}


async def main() -> None:
    """Run the benchmark, and print the leaderboard and the least Socratic answer."""
    result = await run(CONFIG, store="notebook.db")
    for model in result.comparison.models:
        print(f"{model.model_id:20} {model.overall_score or 0:.2f}")
    scored = [row for row in result.responses if row.overall is not None]
    least = min(scored, key=lambda row: row.overall or 0)
    print(f"{least.model}, {least.scenario}: {least.text}")


if __name__ == "__main__":
    asyncio.run(main())
