"""`/api/experiments/{experiment_id}/events`: the detail of an experiment as it changes."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.streams import MEDIA_TYPE, MOST_STREAMS, Streams
from socratic_api.control.capabilities import Capabilities
from socratic_api.endpoints import Endpoint
from socratic_api.http.problems import Conflict
from socratic_api.routes.experiments.one_experiment import PATH, PROBLEMS, Read, named_in


def endpoints(read: Read, streams: Streams, capabilities: Capabilities) -> list[Endpoint]:
    """Return the endpoint of the stream."""

    async def follow_experiment(request: Request) -> Response:
        if not capabilities.may_stream:
            raise Conflict(
                "this API cannot stream: poll /api/experiments/{experiment_id} with If-None-Match"
            )
        wanted = named_in(request)
        await read(wanted)  # an unknown experiment is a problem, not a stream
        return streams.response(partial(read, wanted), request.headers.get("last-event-id"))

    return [
        Endpoint(
            f"{PATH}/events",
            follow_experiment,
            "The detail of an experiment at each change, as server-sent events",
            MEDIA_TYPE,
            description="Each event `experiment` holds what `/api/experiments/{experiment_id}` "
            "answers, and has its ETag as id. `away` says that the store does not answer, `gone` "
            "that the experiment was deleted. A comment comes every 15 seconds. Where an answer "
            "has to be whole, as behind a function, poll with If-None-Match instead.",
            problems={
                **PROBLEMS,
                409: "This API cannot stream",
                503: f"The store does not answer, or {MOST_STREAMS} streams are open",
            },
        )
    ]
