"""`python -m socratic_curator`: the curator as a container runs it."""

from __future__ import annotations

import sys

from socratic_bench.plugins import exit_without

exit_without(
    "prometheus_client",
    needed_by="the curator as a process of its own",
    extra="socratic-ai-bench-curator[rabbitmq]",
)

from socratic_curator.entrypoints.container import main  # noqa: E402 - needs the package

sys.exit(main())
