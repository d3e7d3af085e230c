"""All benchmarks, one after another: `make bench`."""

from __future__ import annotations

from tests.benchmarks import (
    api_throughput,
    distributed_throughput,
    embedded_throughput,
    scoring_speed,
    slow_model,
    visible_latency,
)

if __name__ == "__main__":
    scoring_speed.main()
    api_throughput.main()
    embedded_throughput.main()
    distributed_throughput.main()
    slow_model.main()
    visible_latency.main()
