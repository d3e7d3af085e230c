"""The application: the stacks of one stage."""

from __future__ import annotations

from aws_cdk import App, Tags

from socratic_aws.stacks.containers.base import ContainerBase
from socratic_aws.stacks.foundation import Foundation
from socratic_aws.stacks.service_stack import ServiceStack
from socratic_aws.stacks.services import STACKED
from socratic_aws.stacks.site import Site
from socratic_aws.stacks.stage import Stage, check


def build_app(app: App) -> App:
    """Add the stacks of the stage that the context names. Raises WrongContext."""
    stage = Stage.from_context(app.node)
    Tags.of(app).add("socratic-stage", stage.name)
    Foundation(app, stage)
    services = {name: ServiceStack(app, name, stage) for name in STACKED}
    if stage.compute == "containers":
        base = ContainerBase(app, stage)
        for service in services.values():
            service.add_stack_dependency(base, "Its tasks need the network.")
        # The API only reads the store, which the others prepare.
        services["api"].add_stack_dependency(services["curator"], "It prepares the store.")
    Site(app, stage, services["api"])
    check(app)
    return app


def main() -> None:
    """Write the templates to where CDK says."""
    build_app(App()).synth()


if __name__ == "__main__":
    main()
