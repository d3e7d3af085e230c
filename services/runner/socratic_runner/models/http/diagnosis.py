"""Decides whose fault a refused call is, and what mends it: each rule by the words of servers.

docs/models.md lists the same refusals for readers.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from socratic_bench.errors import FailureKind, FaultScope
from socratic_runner.models.http.problems import ProviderProblem


class Diagnosis(NamedTuple):
    """Whose fault a refusal is."""

    scope: FaultScope
    remedy: str = ""
    """The end of the failure's sentence: what a person does; empty without a known one."""

    lasts: bool = False
    """Whether no other call gets through, although the class of the failure usually passes."""


class Called(NamedTuple):
    """The call that a server refused."""

    url: str
    has_key: bool = True
    key_name: str | None = None
    """Where the key came from, if that is known."""

    proxy: str | None = None
    """The proxy before the server, if any."""

    is_streamed: bool = False


_OMIT: Final = "set options: {{omit: [{0}]}}"
_BY_PARAMETER: Final = {
    "temperature": _OMIT,
    "top_p": _OMIT,
    "seed": _OMIT,
    "random_seed": "set options: {{omit: [seed]}}",
    "stream_options": _OMIT,
    "max_tokens": "set options: {{max_tokens_field: max_completion_tokens}}",
    "max_completion_tokens": "set options: {{max_tokens_field: max_tokens}}",
    "stream": "set options: {{stream: false}}",
    "streaming": "set options: {{stream: false}}",
}
"""The option for each field of a request that some models refuse."""

_REFUSES_A_FIELD: Final = re.compile(
    r"(not|n't|no longer|never) (yet )?(support|permit|allow|accept|available|valid|one of)"
    r"|unsupported|unknown|unrecogni[sz]ed|unexpected|deprecated|extra (inputs?|fields?)"
    r"|cannot (both )?be|no such (field|parameter)|got an unexpected|extra_forbidden"
    r"|must be verified to|(expected|must be|should be) (null|absent|unset|1\b|1\.0\b|equal)"
    r"|may only be|must be (strictly positive|> ?[01])"
)
_FIELDS: Final = re.compile(
    r"(?<![\w.])(stream_options|max_completion_tokens|max_tokens|temperature|top_p|random_seed"
    r"|seed|streaming|stream)(?![\w])"
)

_SYSTEM_ROLE: Final = (
    r"system (role|message|prompt|instruction)s?\b.{0,40}(not|n't|un)[ -]?(be )?"
    r"(support|enabl|allow)"
    r"|(not|n't) support (the )?[`'\"]?system\b|developer instruction is not enabled"
    r"|only (the )?[`'\"]?user[`'\"]? and [`'\"]?(assistant|model)"
    r"|(?<!optional system message, )conversation roles must alternate"
    r"|input should be [`'\"]user[`'\"] or [`'\"](assistant|model)"
    r"|(unexpected|invalid|unknown|unsupported) (message )?role:? [`'\"]?system"
    r"|role\W{1,3}system\W{1,3}is not|first message must be (from )?(the )?[`'\"]?user"
    r"|\.role\b.{0,40}not support [`'\"]?system"
)
_WRONG_NAME: Final = re.compile(
    r"(invalid|unknown|unsupported|no such|not a valid|no|retired) model\W?(s|id|name)?\b"
    r"|\bmodel\b.{0,80}(not exist|not found|not (available|valid|loaded)|is invalid|unknown)"
    r"|on-demand throughput|llm provider not provided"
)
_TOO_MANY_TOKENS: Final = re.compile(
    r"max(_completion|_output)?_(new_)?tokens\b.{0,60}"
    r"(too large|too high|at most|less than|exceed|maximum allowed)"
)
_NO_QUOTA: Final = re.compile(
    r"insufficient[_ ](\w+[_ ])?(quota|credits?|balance|funds)|quota is not enough"
    r"|(credit|account) balance is too low|out of credits"
    r"|(budget|spend\w*) (has been |was )?(exceeded|exhausted)"
    r"|exceeded (your |the )?(\w+ ){0,2}budget|can only afford|billing (hard limit|details)"
    r"|payment required|account (is )?(suspended|deactivated|in arrears)"
)
_PLAIN_TO_TLS: Final = re.compile(
    r"plain http request was sent to https|client sent an http request"
)


def _where(words: str, scope: FaultScope, remedy: str) -> tuple[re.Pattern[str], Diagnosis]:
    return re.compile(words), Diagnosis(scope, remedy, lasts=True)


_BY_WORDS: Final = (
    # SGLang and llama.cpp answer 500 where a chat template refuses a message.
    _where(_SYSTEM_ROLE, FaultScope.MODEL, "set options: {system_role: user}"),
    # OpenAI, Azure, Ollama
    _where(
        r"not a chat model|only supported in v1/responses|does not support chat\b"
        r"|chatcompletion operation does not work",
        FaultScope.MODEL,
        "take a model that answers chat completions",
    ),
    # vLLM and Text Generation Inference with a base model
    _where(
        r"chat template is no longer allowed|template error: template not found",
        FaultScope.MODEL,
        "start the server with a chat template (vLLM: --chat-template), or take a model that "
        "follows instructions",
    ),
    # Ollama, LM Studio
    _where(
        r"requires more system memory|insufficient system resources|cudamalloc failed",
        FaultScope.MODEL,
        "free memory at the server, or load a smaller model",
    ),
    # Alibaba
    _where(r"only supports? stream", FaultScope.MODEL, "set options: {stream: true}"),
    _where(
        r"enable_thinking must be set to false",
        FaultScope.MODEL,
        "set options: {extra_body: {enable_thinking: false}}",
    ),
    # OpenRouter
    _where(
        r"data policy|no allowed providers",
        FaultScope.MODEL,
        "let the settings of the router's account use a provider of this model",
    ),
    # OpenAI, Google
    _where(
        r"location is not supported|country, region,",
        FaultScope.ROUTE,
        "the provider serves no calls from this place: call it from another region",
    ),
    # Azure
    _where(
        r"(unsupported|missing).{0,40}api[- ]version"
        r"|api[- ]versions?\b.{0,60}(not support|later)",
        FaultScope.ROUTE,
        "base_url should end with /openai/v1, which takes no api-version",
    ),
    # Portkey
    _where(
        r"x-portkey-\S+ header is required",
        FaultScope.ROUTE,
        "have the gateway, or a proxy before it, add this header",
    ),
)
"""Words of servers that name a remedy, with whatever status they come."""

_OF_ADDRESS: Final = re.compile(r"^missing authentication token$|please configure ai gateway")
"""What AWS's API gateway and Cloudflare's AI gateway say of an unknown path."""

_NO_TUNNEL: Final = re.compile(r"err_ngrok_(3200|8012)|^error code: 1033")
"""What ngrok and Cloudflare say of a tunnel without its other end."""
_UNKNOWN_MODEL: Final = re.compile(
    r"\bmodels?\b|deployment|inference profile|no endpoints found|publisher"
)
_OF_THE_CALL: Final = (
    FailureKind.AUTH,
    FailureKind.BAD_REQUEST,
    FailureKind.NOT_FOUND,
    FailureKind.UNKNOWN,
)
"""Classes of refusals that another call may meet again."""

_NO_CALL: Final = (405, 501)
"""Statuses of an address that takes no call."""

_OF_A_PROXY: Final = (FailureKind.OVERLOADED, FailureKind.TIMEOUT)
"""Classes of failures that a proxy reports by a page where it reaches no server."""

_PAGE: Final = re.compile(r"\s*<(!doctype|html|head|body|\?xml)", re.IGNORECASE)


def says_no_quota(message: str) -> bool:
    """Whether an error tells of an account without quota or credit, which no wait refills."""
    return _NO_QUOTA.search(message.lower()) is not None


def is_page(text: str) -> bool:
    """Whether a text is a page for people, and no answer of an API."""
    return _PAGE.match(text) is not None


def diagnose(  # noqa: PLR0911 - a row for each scope
    kind: FailureKind, status: int | None, problem: ProviderProblem, called: Called
) -> Diagnosis:
    """Return whose fault it is that a server refused a call with an error of this class."""
    said = problem.message.lower()
    by_page = not problem.is_told and is_page(problem.message)
    if _PLAIN_TO_TLS.search(said):
        return Diagnosis(FaultScope.ROUTE, "begin base_url with https://")
    if status == 407 or (by_page and called.proxy is not None and kind in _OF_A_PROXY):
        return Diagnosis(FaultScope.ROUTE, proxy_remedy(called), lasts=status == 407)
    if by_page and kind in (FailureKind.AUTH, FailureKind.BAD_REQUEST) and status not in _NO_CALL:
        # A firewall refuses some prompts by a page, and lets others pass.
        return Diagnosis(FaultScope.CONVERSATION, _firewall_remedy(called))
    if (known := _by_words(kind, said, called)) is not None:
        return known
    if kind is FailureKind.BAD_REQUEST and status not in _NO_CALL:
        return _of_bad_request(said, problem, called)
    if kind is FailureKind.AUTH:
        return Diagnosis(FaultScope.KEY, _key_remedy(said, called))
    if kind is FailureKind.NOT_FOUND and problem.is_told and _UNKNOWN_MODEL.search(said):
        return Diagnosis(FaultScope.MODEL, _model_remedy(called.url))
    if kind in (FailureKind.NOT_FOUND, FailureKind.BAD_REQUEST):
        return Diagnosis(FaultScope.ROUTE, address_remedy(called.url))
    return _of_busy(kind, status, called)


def _by_words(kind: FailureKind, said: str, called: Called) -> Diagnosis | None:
    """Return the diagnosis that the words alone give; None for other words."""
    if _NO_TUNNEL.search(said):
        return Diagnosis(FaultScope.ROUTE, "start the server, and the tunnel to it")
    if kind not in _OF_THE_CALL:
        return None
    if _OF_ADDRESS.search(said):
        return Diagnosis(FaultScope.ROUTE, address_remedy(called.url), lasts=True)
    return next((found for words, found in _BY_WORDS if words.search(said)), None)


def _of_busy(kind: FailureKind, status: int | None, called: Called) -> Diagnosis:
    """Return the diagnosis of a failure that may pass, or that is about one conversation."""
    if kind in (FailureKind.REFUSED, FailureKind.CONTEXT_TOO_LONG):
        return Diagnosis(FaultScope.CONVERSATION)
    if kind is FailureKind.UNKNOWN and status is not None and called.is_streamed:
        remedy = "if it answers without a stream, set options: {stream: false}"
        return Diagnosis(FaultScope.PROVIDER, remedy)
    return Diagnosis(FaultScope.PROVIDER)


def _of_bad_request(said: str, problem: ProviderProblem, called: Called) -> Diagnosis:
    if _WRONG_NAME.search(said):
        return Diagnosis(FaultScope.MODEL, _model_remedy(called.url) if called.url else "")
    if _TOO_MANY_TOKENS.search(said):
        return Diagnosis(FaultScope.MODEL, "lower parameters.max_tokens")
    parameter = problem.parameter if problem.parameter in _BY_PARAMETER else None
    if parameter or _REFUSES_A_FIELD.search(said):
        named = parameter or next(iter(_FIELDS.findall(said)), None)
        if named is not None:
            return Diagnosis(FaultScope.MODEL, _BY_PARAMETER[named].format(named))
    # D-414: nothing names the model or the request's form, so it may be these texts alone.
    return Diagnosis(FaultScope.CONVERSATION)


def address_remedy(url: str) -> str:
    """Return the mistake in a base URL, as far as the address of the call shows it."""
    path = urlsplit(url).path
    call = "/messages" if path.endswith("/messages") else "/chat/completions"
    if path.count(call) > 1:
        advice = f"remove {call} from base_url"
    elif "/v1/v1/" in path:
        advice = "remove /v1 from base_url"
    elif call == "/chat/completions" and "/v1/" not in path:
        advice = "base_url should end with /v1, or with the path that the server's pages name"
    else:
        advice = "base_url should name the API itself, without the path of a call or of a web page"
    return f"the call went to {url}: {advice}"


def _model_remedy(url: str) -> str:
    address = url.partition("?")[0]
    listing = address.removesuffix("/chat/completions").removesuffix("/messages")
    return f"set the option `model` to a name that {listing}/models lists"


def _key_remedy(said: str, called: Called) -> str:
    if says_no_quota(said):
        return "the key's account has no quota or credit left: add some, or use another key"
    if "exception - " in said:
        # LiteLLM begins with the name of the provider's client what it passes on.
        return "the gateway's own key for its provider was refused: mend it at the gateway"
    if not called.has_key:
        return "it wants a key: name its variable in options: {api_key_env: …}"
    place = f" in {called.key_name}" if called.key_name else ""
    if "expire" in said:
        return f"renew the key{place}"
    return f"check the key{place}, and what it may use"


def _firewall_remedy(called: Called) -> str:
    before = f"the proxy {called.proxy} or a firewall" if called.proxy else "a firewall or proxy"
    return f"{before} answered with a page: have it let this address pass"


def proxy_remedy(called: Called) -> str:
    """Return what a person does about a proxy that does not pass a call on."""
    host = urlsplit(called.url).hostname
    scheme = urlsplit(called.url).scheme
    return (
        f"check {scheme}_proxy, with a user and password if it wants them, or add {host} to "
        "no_proxy if it needs no proxy"
    )
