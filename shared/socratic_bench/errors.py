"""The hierarchy of the errors that this project raises on purpose.

This module holds those that several packages share; the lines with a file name the others.

    SocraticBenchError
    ├── InvalidInput            somebody gave us something wrong; the message names the place
    │   ├── InvalidConfig       a benchmark configuration, with every mistake found in it
    │   ├── InvalidSettings     the settings of a service
    │   ├── InvalidEvent        a message that cannot be decoded
    │   ├── UnknownProfile      a scorer profile nobody registered
    │   ├── UnknownProvider     a model id whose provider nobody registered
    │   ├── MissingCredential   a key or permission that has to be in the environment
    │   ├── UnlistedEndpoint    an address that may not be called, or not with this key
    │   ├── MissingExtra        an optional dependency that is not installed
    │   ├── BrokenPlugin        an installed plug-in that cannot be used
    │   ├── BrokenProfile       a profile that makes no score
    │   ├── UnknownExperiment   an experiment the store does not have
    │   ├── UnknownRun          a run of which the store has neither a response nor a failure
    │   ├── UnknownModel        a model that no experiment has
    │   ├── UngradedResponse    a response without the grading that its profile needs
    │   ├── AmbiguousExperiment a text that could mean several experiments
    │   ├── NoScores            no experiment has a score: results/experiment_choice.py
    │   ├── Unreadable          a configuration's end of reading: planning/config_file/source.py
    │   └── TooManyMistakes     the same, from too many mistakes: planning/config_file/source.py
    ├── ModelCallFailed         a provider did not give a response
    │   └── ModelUnusable       nor will it give any other until somebody acts
    ├── StoreError              the store did not do what was asked
    │   ├── StoreUnavailable    for now: worth another try
    │   │   └── StoreNotWritable    perhaps until somebody acts: disk full, read-only
    │   ├── StoreRefused        a fact that it cannot hold: no other try helps
    │   ├── StoreUnreadable     a row that this version cannot read
    │   ├── ExperimentStopped   an experiment that is paused, cancelled or deleted
    │   └── StoreBroken         until somebody acts: not a database, wrong address
    ├── BrokerError             the broker did not do what was asked
    │   ├── BrokerClosed        it was closed, or never opened
    │   ├── BrokerUnavailable   for now: worth another try
    │   │   └── BrokerRefused       until somebody acts: a permission, a limit, the address
    │   ├── MessageTooLarge     a message above the broker's limit; it took the others
    │   ├── DeliveryLost        it went back to its queue and is delivered again, to somebody
    │   └── UnroutableMessage   no queue takes messages of this type, nor is it a broadcast
    ├── GroupCommitClosed       an item came too late to be committed
    ├── CannotStart             no store or broker in time: hosting/starting.py
    ├── LimiterClosed           the runner begins no more calls: its limits/ticket.py
    ├── Conflict                the API does not allow it in this state: its http/problems.py
    └── StoreInUse              another benchmark has the store: the command's benchmark_run.py

Three errors derive from Python's own, since one part raises and catches them: RefusedAddress and
CallStopped among the runner's models, NoDocuments in the command's reader of files. The programs
that build the dashboard and deploy to AWS use no error of this module.

Each message says what is wrong, where, and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class SocraticBenchError(Exception):
    """Anything this project raises on purpose."""


class InvalidInput(SocraticBenchError):
    """Somebody gave us something wrong; the message names the place."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong in an input, and where."""

    place: str
    """Where: a file and line, a field, or both, as a person would look for it."""

    problem: str
    """What is wrong there, and what would be right."""

    line: int | None = field(default=None, compare=False)
    """The line of the place, from 1; None where the place has none."""

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


_INDEX: Final = re.compile(r"\[\d+\]")

FEWEST_ALIKE: Final = 3
"""Equal mistakes in so many entries of a list become one sentence."""


def _sentences(mistakes: Sequence[Mistake]) -> Iterator[str]:
    """Yield each mistake; equal ones of many entries once, with their lines and their number."""
    kinds = [_kind(each) for each in mistakes]
    alike: dict[tuple[str, str, str], list[Mistake]] = {}
    for kind, each in zip(kinds, mistakes, strict=True):
        alike.setdefault(kind, []).append(each)
    for kind, each in zip(kinds, mistakes, strict=True):
        if len(alike[kind]) < FEWEST_ALIKE:
            yield str(each)
        elif each is alike[kind][0]:
            yield _of_all(kind, [other.line for other in alike[kind]])


def _kind(mistake: Mistake) -> tuple[str, str, str]:
    """Return the file, the path without indices, and the problem of a mistake."""
    file, line, path = mistake.place.partition(f" line {mistake.line}")
    if not line:
        file, path = "", file
    return file, _INDEX.sub("[*]", path), mistake.problem


def _of_all(kind: tuple[str, str, str], lines: Sequence[int | None]) -> str:
    file, path, problem = kind
    first, last = lines[0], lines[-1]
    where = "" if not file else f" line {first}" if first == last else f" lines {first} to {last}"
    return f"{file}{where}{path}: {problem} ({len(lines)} times)"


class InvalidConfig(InvalidInput):
    """A benchmark configuration that cannot be run, with every mistake found in it."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(_sentences(self.mistakes)))


class InvalidSettings(InvalidInput):
    """The settings of a service are wrong; the message names the variable."""


class InvalidEvent(InvalidInput):
    """A message that is not an event of this project, or not one this version reads."""


class UnknownProfile(InvalidInput):
    """A scorer profile nobody registered."""


class UnknownProvider(InvalidInput):
    """A model id whose provider nobody registered."""


class UnknownExperiment(InvalidInput):
    """An experiment the store does not have."""


class UnknownRun(InvalidInput):
    """A run without a response and without a failure in the store."""


class UnknownModel(InvalidInput):
    """A model that no experiment of the store has, or not the one that was asked for."""


class AmbiguousExperiment(InvalidInput):
    """A text could mean several experiments; the message names them."""


class MissingCredential(InvalidInput):
    """A key, or what stands for one, is not in the environment; the message names the variable."""


class WrongCredential(MissingCredential):
    """A key is in the environment, but cannot be one; the message says why."""


class UnlistedEndpoint(InvalidInput):
    """An address may not be called, or not with this key; the message names the setting."""


class MissingExtra(InvalidInput):
    """A provider's optional dependency is not installed; the message says how to get it."""


class BrokenPlugin(InvalidInput):
    """An installed plug-in cannot be used; the message names its distribution."""


class BrokenProfile(InvalidInput):
    """A profile raised, or made no score or no evidence; the message names the profile."""


class UngradedResponse(InvalidInput):
    """A response came to be scored without the grading that its profile needs."""


class FailureKind(StrEnum):
    """Why a provider gave no response: the `kind` of ModelCallFailed, whoever the provider is."""

    RATE_LIMITED = "rate_limited"
    """Too many requests or tokens for now; the provider may say how long to wait."""
    OVERLOADED = "overloaded"
    """The provider cannot serve anybody for now."""
    UNREACHABLE = "unreachable"
    """No connection to the provider, or it was lost before the response began."""
    TIMEOUT = "timeout"
    """No complete response within the deadline."""
    CUT_STREAM = "cut_stream"
    """The response ended without saying that it was finished."""
    REFUSED = "refused"
    """A filter rejected the question. A model that declines in words gives a Reply instead."""
    CONTEXT_TOO_LONG = "context_too_long"
    """The question does not fit into what the model can read."""
    BAD_REQUEST = "bad_request"
    """The provider does not accept the request as it stands."""
    TLS = "tls"
    """No trusted connection: the server's certificate, or no TLS at that port."""
    AUTH = "auth"
    """The key is missing, wrong, or not allowed to use this model."""
    NOT_FOUND = "not_found"
    """There is no such model, or nothing was recorded for this question."""
    MALFORMED_REPLY = "malformed_reply"
    """The provider answered with something that cannot be read."""
    UNSTORABLE = "unstorable"
    """The store cannot hold the reply, such as one that is too large; the message has its words."""
    UNKNOWN = "unknown"
    """Anything else; the message holds what is known."""

    @classmethod
    def _missing_(cls, value: object) -> FailureKind:
        """A kind that only a newer version knows is UNKNOWN here."""
        return cls.UNKNOWN


class FaultScope(StrEnum):
    """What a failed call is the fault of; all calls that share it would fail alike."""

    CONVERSATION = "conversation"
    """The texts of this conversation; other conversations may get replies."""
    MODEL = "model"
    """The model, its name or its parameters."""
    KEY = "key"
    """The key or its account; another key, or the renewed one, may be accepted."""
    PROVIDER = "provider"
    """The provider, for now."""
    ROUTE = "route"
    """The way to the provider: the address, a name server, a certificate, a proxy."""


_SCOPES: Final = {
    FailureKind.REFUSED: FaultScope.CONVERSATION,
    FailureKind.CONTEXT_TOO_LONG: FaultScope.CONVERSATION,
    FailureKind.UNSTORABLE: FaultScope.CONVERSATION,
    FailureKind.BAD_REQUEST: FaultScope.MODEL,
    FailureKind.NOT_FOUND: FaultScope.MODEL,
    FailureKind.AUTH: FaultScope.KEY,
    FailureKind.TLS: FaultScope.ROUTE,
    FailureKind.UNREACHABLE: FaultScope.ROUTE,
}
"""The scope of a class whose failure tells no more. It is PROVIDER for the other classes."""


class ModelCallFailed(SocraticBenchError):
    """A provider did not give a response.

    `kind` is the class of the failure as coverage reports it; `retryable` says whether asking
    again may help; `retry_after` is what the provider asked for, in seconds; `scope` tells which
    other calls would fail alike.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        retryable: bool,
        retry_after: float | None = None,
        scope: FaultScope | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable
        self.retry_after = retry_after
        self.scope = scope or _SCOPES.get(kind, FaultScope.PROVIDER)


class ModelUnusable(ModelCallFailed):
    """A provider refused a call for a reason that every call to this model shares: the key, the
    model's name, a parameter. Until somebody acts no other call to it should be made.
    """

    def __init__(self, kind: FailureKind, message: str, scope: FaultScope | None = None) -> None:
        super().__init__(kind, message, retryable=False, scope=scope)


class StoreError(SocraticBenchError):
    """The store did not do what was asked."""


class StoreUnavailable(StoreError):
    """The store cannot be used for now; another try may succeed."""


class StoreNotWritable(StoreUnavailable):
    """The store takes nothing for now: disk full, read-only, password refused.

    It may pass, as in a fail-over; unless it does, somebody has to act, as the message says.
    """


class StoreRefused(StoreError):
    """The store refuses this fact, such as a number that is too large; no other try helps."""


class StoreUnreadable(StoreError):
    """A row cannot be read by this version: a newer one may have written it, or it is damaged."""


class ExperimentStopped(StoreError):
    """The experiment is paused, cancelled or deleted; the message names the next command."""


class StoreBroken(StoreError):
    """The store cannot be used until somebody acts: not a database, wrong address, damaged."""


class BrokerError(SocraticBenchError):
    """The broker did not do what was asked."""


class BrokerClosed(BrokerError):
    """The broker was closed, or never opened."""


class BrokerUnavailable(BrokerError):
    """The broker cannot be reached for now; another try may succeed."""


class BrokerRefused(BrokerUnavailable):
    """The broker refuses until somebody acts: a virtual host, a permission, a limit.

    The message has the broker's own words. A running service goes on trying; a command, and a
    service that starts, end at once.
    """


class MessageTooLarge(BrokerError):
    """The broker takes no message of this size. It took the other messages of the call."""


class DeliveryLost(BrokerError):
    """A delivery is not in this consumer's hand any more: it was settled before, or it went back
    to its queue and is delivered again, perhaps to another consumer.
    """


class UnroutableMessage(BrokerError):
    """No declared queue takes messages of this type, and it is not a broadcast."""


class GroupCommitClosed(SocraticBenchError):
    """The group commit was closed before this item was committed for certain."""
