"""Metrics in CloudWatch's embedded format: a line of the log, from which CloudWatch makes them.

A line costs no request, and nothing that could fail. CloudWatch bills each name in each set of
dimensions by the month, so there are few, and what else is of interest stands in the line as text.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Final

NAMESPACE: Final = "SocraticBench"


class EmbeddedMetrics:
    """Writes the metrics of one service."""

    def __init__(self, service: str, stage: str) -> None:
        self._dimensions = {"Stage": stage, "Service": service}

    def write(
        self,
        counts: Mapping[str, int],
        amounts: Mapping[str, float] | None = None,
        /,
        **others: str | float | Mapping[str, int],
    ) -> None:
        """Write counts and amounts as metrics, and `others` beside them.

        Writes nothing where all counts are 0. The name of an amount ends with its unit.
        """
        if not any(counts.values()):
            return
        amounts = amounts or {}
        units = {**dict.fromkeys(counts, "Count"), **dict.fromkeys(amounts, "None")}
        line = {
            "_aws": {
                "Timestamp": round(time.time() * 1000),
                "CloudWatchMetrics": [
                    {
                        "Namespace": NAMESPACE,
                        "Dimensions": [list(self._dimensions)],
                        "Metrics": [{"Name": name, "Unit": unit} for name, unit in units.items()],
                    }
                ],
            },
            **self._dimensions,
            **others,
            **counts,
            **amounts,
        }
        sys.stdout.write(f"{json.dumps(line)}\n")
        sys.stdout.flush()
