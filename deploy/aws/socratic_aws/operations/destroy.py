"""Removes the stacks of a stage; its table and its buckets stay.

    python -m socratic_aws.operations.destroy --stage test --confirm test

CloudFormation removes what it knows by the stacks' names, so that nothing has to be built.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from botocore.exceptions import WaiterError  # type: ignore[import-untyped]

from socratic_aws.operations.deploy import stacks_of
from socratic_aws.operations.installation import CONTAINER, Installation, say


def main(arguments: Sequence[str] | None = None) -> None:
    """Remove the stacks, those that need others first, and tell what stays."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", required=True)
    parser.add_argument("--confirm", default="", help="the name of the stage once more")
    given = parser.parse_args(arguments)
    if given.confirm != given.stage:
        sys.exit(f"This removes the stage {given.stage}; say so: CONFIRM={given.stage}")
    installation = Installation(given.stage)
    stacks = [name.lower() for name in reversed(stacks_of(CONTAINER))]
    there = [name for name in stacks if installation.has(name)]
    if not there:
        sys.exit(f"There is no stage {given.stage} in this account and region: nothing to remove.")
    for name in there:
        say(f"Removing    {installation.named(name)}")
        try:
            installation.remove(name)
        except WaiterError:
            sys.exit(
                f"CloudFormation could not remove {installation.named(name)}; `aws cloudformation "
                f"describe-stack-events --stack-name {installation.named(name)}` says why. Repeat "
                "this command once that is mended."
            )
    installation.client("ssm").delete_parameters(Names=[f"/{installation.prefix}/api-keys"])
    say(
        f"Removed. The table {installation.prefix}-store and the buckets {installation.prefix}-… "
        "stay, since they hold results: the runbook says how to remove them."
    )


if __name__ == "__main__":
    main()
