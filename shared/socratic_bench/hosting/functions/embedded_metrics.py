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

    def write(self, counts: Mapping[str, int], **others: str | float) -> None:
        """Write these counts as metrics, and `others` beside them; nothing where all are 0."""
        if not any(counts.values()):
            return
        line = {
            "_aws": {
                "Timestamp": round(time.time() * 1000),
                "CloudWatchMetrics": [
                    {
                        "Namespace": NAMESPACE,
                        "Dimensions": [list(self._dimensions)],
                        "Metrics": [{"Name": name, "Unit": "Count"} for name in counts],
                    }
                ],
            },
            **self._dimensions,
            **others,
            **counts,
        }
        sys.stdout.write(f"{json.dumps(line)}\n")
        sys.stdout.flush()
