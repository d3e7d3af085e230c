"""A benchmark on a database file has the file to itself."""

from pathlib import Path

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.planning.config_file.config import BenchmarkConfig
from socratic_bench.providers.endpoints import ANYWHERE
from socratic_cli.benchmark_run import opened_benchmark
from tests.contract.store.facts import an_experiment, claim_of
from tests.servers.sqlite import prepared_file

PLANNED = an_experiment()
RUN = next(PLANNED.runs())


async def test_the_leases_of_a_killed_process_are_free_at_once(tmp_path: Path) -> None:
    url = await prepared_file(tmp_path / "benchmark.db")
    store = SqlStore.from_url(url)
    await store.register(PLANNED)
    await store.take_leases([claim_of(RUN, "theirs")], "killed")
    config = BenchmarkConfig(PLANNED.manifest, occasion=None, base_folder=None)
    async with opened_benchmark(config, ANYWHERE, url):
        taken = await store.take_leases([claim_of(RUN, "ours")], "restarted")
    await store.close()
    assert list(taken) == [LeaseAnswer.GRANTED]
