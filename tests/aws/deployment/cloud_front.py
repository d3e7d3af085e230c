"""CloudFront, which the emulator has no data plane of: it answers as a distribution is configured.

The emulator's bucket and HTTP API answer behind it. The code of its function is imitated.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import aiohttp
from aiohttp import web
from yarl import URL

from tests.aws.deployment.stage import Operator, function

BUCKET_DOMAIN = ".s3."
MOST_BYTES = 5_000_000
"""The most bytes of an answer: API Gateway and Lambda take little more."""

NOT_FORWARDED = {"host", "connection", "transfer-encoding", "content-length", "keep-alive"}
SAME_ORIGIN = function("same-origin")


class Answered(NamedTuple):
    """A request, and the status of its answer."""

    method: str
    path: str
    status: int


@dataclass
class CloudFront:
    """A distribution with a port of its own."""

    operator: Operator
    address: str = ""
    answered: list[Answered] = field(default_factory=list)
    largest: int = 0
    """Bytes of the largest answer of the API."""

    def __post_init__(self) -> None:
        client = self.operator.client("cloudfront")
        [distribution] = [
            each
            for each in client.list_distributions()["DistributionList"]["Items"]
            if each["Comment"] == function("site")
        ]
        config = client.get_distribution_config(Id=distribution["Id"])["DistributionConfig"]
        self._root: str = config["DefaultRootObject"]
        self._default = config["DefaultCacheBehavior"]
        self._behaviours = config["CacheBehaviors"]["Items"]
        self._origins = {each["Id"]: each["DomainName"] for each in config["Origins"]["Items"]}
        policy = client.get_response_headers_policy_config(
            Id=self._default["ResponseHeadersPolicyId"]
        )["ResponseHeadersPolicyConfig"]["SecurityHeadersConfig"]
        self._headers = {
            "content-security-policy": policy["ContentSecurityPolicy"]["ContentSecurityPolicy"],
            "referrer-policy": policy["ReferrerPolicy"]["ReferrerPolicy"],
            "x-content-type-options": "nosniff",
            "x-frame-options": policy["FrameOptions"]["FrameOption"],
        }

    async def answer(self, request: web.Request, session: aiohttp.ClientSession) -> web.Response:
        """Forward a request as the distribution would."""
        behaviour = self._behaviour(request.path)
        origin = self._origins[behaviour["TargetOriginId"]]
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in NOT_FORWARDED
        }
        functions = behaviour.get("FunctionAssociations", {}).get("Items", [])
        is_compared = any(each["FunctionARN"].endswith(f"/{SAME_ORIGIN}") for each in functions)
        if is_compared and headers.get("Origin") == self.address:  # as in same_origin.js
            del headers["Origin"]
        path = request.rel_url.raw_path
        if BUCKET_DOMAIN in origin:
            bucket = origin.partition(BUCKET_DOMAIN)[0]
            target = f"/{bucket}/{path.lstrip('/') or self._root}"
            headers = {name: value for name, value in headers.items() if name.lower() != "range"}
        else:
            target = request.rel_url.raw_path_qs
            headers["Host"] = f"{origin.partition('.')[0]}.execute-api.localhost"
        url = URL(f"{self.operator.endpoint}{target}", encoded=True)
        body = await request.read()
        async with session.request(
            request.method, url, headers=headers, data=body or None, allow_redirects=False
        ) as answer:
            content = await answer.read()
            shown = self._shown(answer, behaviour)
        if BUCKET_DOMAIN not in origin:
            self.largest = max(self.largest, len(content))
        self.answered.append(Answered(request.method, request.path, answer.status))
        return web.Response(status=answer.status, headers=shown, body=content)

    def _behaviour(self, path: str) -> Any:
        for each in self._behaviours:
            if fnmatchcase(path, f"/{each['PathPattern'].lstrip('/')}"):
                return each
        return self._default

    def _shown(self, answer: aiohttp.ClientResponse, behaviour: Any) -> dict[str, str]:
        """The headers of an answer, without those that the emulator adds and AWS does not."""
        shown = {
            name.lower(): value
            for name, value in answer.headers.items()
            if name.lower() not in NOT_FORWARDED | {"date", "server"}
            and not name.lower().startswith("access-control-")
        }
        return shown | (self._headers if behaviour is self._default else {})


@asynccontextmanager
async def cloud_front(operator: Operator) -> AsyncIterator[CloudFront]:
    """A distribution that answers at its `address`."""
    front = CloudFront(operator)
    async with aiohttp.ClientSession(auto_decompress=False) as session:

        async def handle(request: web.Request) -> web.Response:
            return await front.answer(request, session)

        app = web.Application(client_max_size=10 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        front.address = f"http://{host}:{port}"
        try:
            yield front
        finally:
            await runner.cleanup()
