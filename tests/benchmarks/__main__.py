"""All benchmarks but the one beside Inspect AI, one after another: `make bench`."""

from __future__ import annotations

import tempfile

from tests.benchmarks import (
    api,
    aws,
    change_points,
    embedded,
    fidelity_coverage,
    interval_coverage,
    pages,
    services,
    simulated_chaos,
    start,
)
from tests.benchmarks.calls import call_cost, many_endpoints

if __name__ == "__main__":
    embedded.main()
    interval_coverage.main()
    fidelity_coverage.main()
    change_points.main()
    services.main()
    many_endpoints.main()
    call_cost.main()
    aws.main()
    with tempfile.TemporaryDirectory() as folder:
        api.main(None, folder)
        pages.main(None, folder)
    simulated_chaos.main()
    start.main()
