"""The part of the store that results are read from."""

from __future__ import annotations

from typing import Protocol

from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Experiments


class ResultStore(Experiments, Aggregates, Protocol):
    """Experiments and their cells: what tables and their checks read."""
