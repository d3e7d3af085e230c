"""`/api/export`: a table of an experiment, as a stream of records."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from socratic_api.endpoints import ApiEndpoint, QueryParameter
from socratic_api.http.whole_answers import COMMAND
from socratic_api.routes.query import (
    DIMENSION,
    MODELS,
    PROBLEMS,
    PROFILE,
    chosen_experiment,
    chosen_models,
    chosen_name,
    chosen_profile,
)
from socratic_api.routes.run_context import RunStore
from socratic_api.routes.runs import EXPERIMENT, experiment_of
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.errors import InvalidInput, MissingExtra
from socratic_bench.results.export.formats import FORMATS, check_format, file_pieces
from socratic_bench.results.export.tables import TABLES, open_table
from socratic_bench.results.filters import written_conditions
from socratic_bench.results.transcripts import chosen_runs

_RESPONSES: Final = "responses"
_JSON_LINES: Final = "jsonl"

_TABLE: Final = QueryParameter(
    "table",
    "What a record is: a scored response, a scenario, or a turn without scores.",
    {"type": "string", "enum": list(TABLES), "default": _RESPONSES},
)
_FORMAT: Final = QueryParameter(
    "format",
    "The same bytes as `socratic-bench export --format` writes.",
    {"type": "string", "enum": list(FORMATS), "default": _JSON_LINES},
)
_WHERE: Final = QueryParameter(
    "where",
    "A condition on scenarios' metadata such as `grade=7`; all of several hold.",
    {"type": "array", "items": {"type": "string", "minLength": 1}},
)
_OPTIONS: Final = (PROFILE, MODELS, DIMENSION, _WHERE, _TABLE, _FORMAT)


MOST_OF_AN_ADDRESS: Final = 8
"""The most exports at once for one address, which may be a proxy's: a reader holds one for long."""


class _Exports:
    """Counts the exports of each address from their request to their end."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    @contextmanager
    def one_of(self, address: str) -> Iterator[None]:
        """Count one more inside the context. Raises HTTPException 503 if there are too many."""
        if self._held[address] >= MOST_OF_AN_ADDRESS:
            raise HTTPException(
                503,
                f"{MOST_OF_AN_ADDRESS} exports for your address have not ended: read them, or "
                "try again later",
                {"Retry-After": "30"},
            )
        self._held[address] += 1
        try:
            yield
        finally:
            self._held -= Counter([address])


class _Export(Response):
    """An export that is made and sent as one of its address."""

    def __init__(self, exports: _Exports, make: Callable[[], Awaitable[Response]]) -> None:
        super().__init__()
        self._exports = exports
        self._make = make

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        with self._exports.one_of(client[0] if client else ""):
            response = await self._make()
            await response(scope, receive, send)


def endpoints(store: RunStore) -> list[ApiEndpoint]:
    """Return the endpoint. It sends records as it reads them, so its memory stays flat."""
    exports = _Exports()

    async def export_table(request: Request) -> Response:
        return _Export(exports, partial(answer, request))

    async def answer(request: Request) -> Response:
        what = _one_of(request, "table", TABLES, _RESPONSES)
        output = _one_of(request, "format", FORMATS, _JSON_LINES)
        profile = chosen_profile(request)
        experiment = await experiment_of(store, chosen_experiment(request))
        models, dimension = chosen_models(request), chosen_name(request, "dimension")
        where = written_conditions(filter(None, request.query_params.getlist("where")))
        # Before the answer begins: a stream cannot refuse.
        chosen = chosen_runs(experiment, models=models, dimension=dimension, where=where)
        table = await open_table(what, store, chosen, profile)
        name = file_name(experiment, what, output, is_whole=not (models or dimension or where))
        command = _command(request, experiment, name)
        try:
            check_format(output)
        except MissingExtra as error:
            raise InvalidInput(f"{error}; then the command `{command}` writes it, too") from error
        request.scope.setdefault("state", {})[COMMAND] = command
        return StreamingResponse(
            file_pieces(table, output),
            media_type=FORMATS[output].media_type,
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    return [
        ApiEndpoint(
            "/api/export",
            export_table,
            "The scored responses of an experiment, or another table, as a file",
            FORMATS[_JSON_LINES].media_type,
            also=tuple(each.media_type for each in FORMATS.values())[1:],
            parameters=(EXPERIMENT, *_OPTIONS),
            problems={
                **PROBLEMS,
                503: "The store does not answer, many exports are open, or the file takes too long "
                "where an answer has to be whole, as on Lambda",
                404: "There is no such experiment, or none at all",
                422: "A parameter has no such value, or names what the experiment does not have; "
                "the file is too large where an answer has to be whole; or the API has no pyarrow",
            },
        )
    ]


def file_name(experiment: Experiment, what: str, output: str, *, is_whole: bool) -> str:
    """Return the name that a browser saves the file under."""
    of_table = "" if what == _RESPONSES else f"-{what}"
    filtered = "" if is_whole else "-filtered"
    return f"{experiment.experiment_id}{of_table}{filtered}.{output}"


def _command(request: Request, experiment: Experiment, file: str) -> str:
    """Return the command that writes the same file: its options are named as the parameters are."""
    options = [
        word
        for name, value in request.query_params.multi_items()
        if name in {each.name for each in _OPTIONS} and value
        for word in (f"--{name}", value)
    ]
    words = ("socratic-bench", "export", experiment.experiment_id, *options, "--out", file)
    return shlex.join(words)


def _one_of(request: Request, name: str, known: Collection[str], usual: str) -> str:
    wanted = request.query_params.get(name, usual)
    if wanted not in known:
        raise InvalidInput(f"{name}: must be one of {', '.join(known)}, not {wanted!r}")
    return wanted
