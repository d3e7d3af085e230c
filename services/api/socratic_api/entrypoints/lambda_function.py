"""The API as a function: `handler` gets the requests of an HTTP API."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.types import ASGIApp

from socratic_api.bootstrap import build_app
from socratic_api.capabilities import Capabilities
from socratic_api.http.whole_answers import WholeAnswers
from socratic_api.settings import ApiFunctionSettings, ApiSettings
from socratic_bench.adapters.aws.documents import read_parameter
from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.adapters.stores.dynamodb.store import DynamoDBStore
from socratic_bench.errors import InvalidSettings
from socratic_bench.hosting.functions.environment import Environment
from socratic_bench.hosting.functions.http_function import HttpFunction
from socratic_bench.hosting.functions.starting import POLL_SECONDS, start
from socratic_bench.hosting.starting import opened_store
from socratic_bench.service_settings import load_settings

MOST_RUNS = 20_000
"""The most runs of a submission: the scheduler completes a plan that the function did not, in one
invocation."""

LEFT_SECONDS = 4.0
"""Seconds of an invocation that are left when its answer is refused: of 29, so that each is there
after 25, whatever the start of the environment took."""

RELEASE = "x-socratic-release"
"""The header that names what answers: a deployment and a rollback are checked by it."""


@asynccontextmanager
async def _opened() -> AsyncIterator[ASGIApp]:
    settings = start("api", ApiFunctionSettings)
    keys = await read_parameter(settings.api_keys_parameter)
    api_settings = load_settings(ApiSettings, store_url=settings.store_url, api_keys=keys)
    if not api_settings.api_keys:
        raise InvalidSettings(f"the parameter {settings.api_keys_parameter} holds no key")
    async with AsyncExitStack() as opened:
        store = await opened.enter_async_context(
            opened_store(settings.store_url, DynamoDBStore.from_url)
        )
        # It asks for its queues when it is first used: few requests need them.
        broker = SqsBroker(settings.broker_url.get_secret_value(), poll_seconds=POLL_SECONDS)
        opened.push_async_callback(broker.close)
        capabilities = Capabilities(
            broker,
            may_stream=False,
            outlives_answers=False,
            most_runs=MOST_RUNS,
        )
        app = build_app(store, api_settings, capabilities=capabilities)
        yield WholeAnswers(app, lambda: _environment.time_left() - LEFT_SECONDS)


_environment = Environment(_opened)
handler = HttpFunction(_environment, headers={RELEASE: os.environ.get("SOCRATIC_RELEASE", "")})
