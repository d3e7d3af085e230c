"""`python -m socratic_judge`: the judge as a container runs it."""

from __future__ import annotations

import sys

from socratic_bench.plugins import exit_without

exit_without(
    "prometheus_client",
    needed_by="the judge as a process of its own",
    extra="socratic-ai-bench-judge[rabbitmq]",
)

from socratic_judge.entrypoints.container import main  # noqa: E402 - needs the package

sys.exit(main())
