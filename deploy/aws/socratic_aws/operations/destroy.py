"""Removes the stacks of a stage; its table and its buckets stay.

python -m socratic_aws.operations.destroy --stage test --confirm test
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from socratic_aws.operations.deploy import stacks_of
from socratic_aws.operations.installation import ROOT, Installation, cdk, context_of, say


def main(arguments: Sequence[str] | None = None) -> None:
    """Remove the stacks, and tell what stays."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", required=True)
    parser.add_argument("--confirm", default="", help="the name of the stage once more")
    parser.add_argument("--packages", type=Path, default=ROOT / "build" / "aws")
    parser.add_argument("--context", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args(arguments)
    if given.confirm != given.stage:
        sys.exit(f"This removes the stage {given.stage}; say so: CONFIRM={given.stage}")
    installation = Installation(given.stage)
    context = {
        "stage": given.stage,
        "packages": str(given.packages.resolve()),
        "compute": installation.compute(),
        **context_of(given.context),
    }
    cdk("destroy", *stacks_of(context["compute"]), "--force", context=context)
    installation.client("ssm").delete_parameters(Names=[f"/{installation.prefix}/api-keys"])
    say(
        f"Removed. The table {installation.prefix}-store and the buckets {installation.prefix}-… "
        "stay, since they hold results: the runbook says how to remove them."
    )


if __name__ == "__main__":
    main()
