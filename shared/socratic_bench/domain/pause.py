"""The pause of a model after a push-back: no runner that shares the pause calls the model.

One process, or a store for several, keeps a pause and changes it by `after` alone. Times are
seconds on the keeper's clock.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class PushBack(NamedTuple):
    """A provider pushed a call back."""

    first: float
    """Seconds of the first pause in a row where the provider asked for none; they double with each
    further one."""

    longest: float
    """The most seconds of such a pause."""

    part: float
    """The random part of the pause that is kept, 0 to 1, so that models do not resume in step."""

    asked: float | None
    """The wait in seconds that the provider asked for."""

    kind: str
    reason: str
    """The class of the failure, and the provider's words for it."""


class PauseNews(NamedTuple):
    """One runner's report on a model, and its request for a call."""

    scope: str
    """The name of the pause, which all runners that share it use."""

    seen: int
    """The number of the last pause that the runner knew when the reported call began."""

    replied: bool = False
    """Whether the model answered that call."""

    pushed_back: PushBack | None = None
    """The provider's push-back; it counts after `replied`, which reports an earlier call."""

    wants_call: bool = False
    """Whether the runner would make a call now."""


class Pause(NamedTuple):
    """The pause of one model."""

    number: int = 0
    """The number of pauses so far."""

    in_a_row: int = 0
    """Pauses since the model last answered. From ONE_BY_ONE on, runners call one by one."""

    until: float = 0.0
    """The end of the pause."""

    next_call: float = 0.0
    """The time of the next call where runners call one by one."""

    gap: float = 0.0
    """Seconds between these calls."""

    kind: str = ""
    reason: str = ""
    """The class of the failure that began the pause, and the provider's words for it."""

    def at(self, now: float) -> Pause:
        """Return the pause with times as seconds from `now` on, at least 0."""
        return self._replace(
            until=max(0.0, self.until - now), next_call=max(0.0, self.next_call - now)
        )

    def since(self, now: float) -> Pause:
        """Return the pause with times on a clock that shows `now`: the inverse of `at`."""
        return self._replace(until=now + self.until, next_call=now + self.next_call)

    @property
    def is_over_for_all(self) -> bool:
        """Whether all runners may call the model once the pause is over."""
        return self.in_a_row < ONE_BY_ONE


NONE = Pause()

# Probing from several runners at once kept a busy provider busy.
ONE_BY_ONE: Final = 2
"""A server with a limit of concurrent calls refuses one now and then, and a short pause suffices. A
server that refuses the next call too has a limit of another kind."""


def after(pause: Pause, news: PauseNews, now: float) -> tuple[Pause, bool]:
    """Return the pause after a runner's news, and whether that runner may make a call now.

    Many calls are in flight when a pause begins, and all may fail: news from before the pause can
    only lengthen it by the provider's wish. After two pauses without a reply the runners may make
    one call at the end of the pause, and further ones at intervals of its length.
    """
    is_current = news.seen >= pause.number
    if news.replied and is_current:
        pause = pause._replace(in_a_row=0)
    if news.pushed_back is not None:
        pause = (_longer if is_current else _extended)(pause, news.pushed_back, now)
    if now < pause.until:
        return pause, False
    if pause.is_over_for_all:
        return pause, True
    if not news.wants_call or now < pause.next_call:
        return pause, False
    return pause._replace(next_call=now + pause.gap), True


def _longer(pause: Pause, pushed_back: PushBack, now: float) -> Pause:
    gap = min(pushed_back.longest, pushed_back.first * 2.0 ** min(pause.in_a_row, 30))
    seconds, asked = gap * pushed_back.part, pushed_back.asked
    if asked is not None:
        # A provider that asks for a short wait and then refuses again does not know its wait.
        seconds = max(asked, seconds) if pause.in_a_row else asked
    until = max(pause.until, now + seconds)
    return Pause(
        pause.number + 1,
        pause.in_a_row + 1,
        until,
        until,
        gap,
        pushed_back.kind,
        pushed_back.reason,
    )


def _extended(pause: Pause, pushed_back: PushBack, now: float) -> Pause:
    if pushed_back.asked is None or now + pushed_back.asked <= pause.until:
        return pause
    until = now + pushed_back.asked
    return pause._replace(
        until=until, next_call=until, kind=pushed_back.kind, reason=pushed_back.reason
    )
