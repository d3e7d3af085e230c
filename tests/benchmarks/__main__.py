"""All benchmarks, one after another: `make bench`."""

from __future__ import annotations

from tests.benchmarks import api_throughput, embedded_throughput, scoring_speed

if __name__ == "__main__":
    scoring_speed.main()
    api_throughput.main()
    embedded_throughput.main()
