"""`python -m socratic_runner`: the runner as a container runs it."""

from __future__ import annotations

import sys

from socratic_bench.plugins import exit_without

exit_without(
    "prometheus_client",
    needed_by="the runner as a process of its own",
    extra="socratic-ai-bench-runner[rabbitmq]",
)

from socratic_runner.entrypoints.container import main  # noqa: E402 - needs the package

sys.exit(main())
