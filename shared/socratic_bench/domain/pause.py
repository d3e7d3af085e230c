"""The pause of a model whose provider pushed back: for how long nobody calls it, whoever asks.

Whoever keeps a pause, a process or a store for many, changes it by `after` alone. Times are seconds
on the keeper's clock.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class PushBack(NamedTuple):
    """A provider had no time for a call."""

    first: float
    """Seconds of the first pause in a row that nobody asked for, doubled with each further one."""

    longest: float
    """Seconds that such a pause lasts at most."""

    part: float
    """What part of that it lasts, drawn at random so that models do not go on in step."""

    asked: float | None
    """Seconds that the provider asked to wait."""

    kind: str
    reason: str
    """Why the call failed, and in the provider's words."""


class PauseNews(NamedTuple):
    """What one runner has to tell of a model, and to ask."""

    scope: str
    """The name of the pause: one for everybody who shares it."""

    seen: int
    """The number of the last pause that it knew of when the call began of which it tells."""

    replied: bool = False
    """Whether that call was answered."""

    pushed_back: PushBack | None = None
    """That the provider had no time for it, told after an earlier reply."""

    wants_call: bool = False
    """Whether it would make a call now."""


class Pause(NamedTuple):
    """How a model is paused."""

    number: int = 0
    """How many pauses there were; 0: none."""

    in_a_row: int = 0
    """How many since a call was answered. From ONE_BY_ONE on calls are made one by one."""

    until: float = 0.0
    """When it is over."""

    next_call: float = 0.0
    """When the next call may be made where they are made one by one."""

    gap: float = 0.0
    """Seconds between those calls."""

    kind: str = ""
    reason: str = ""
    """Why the call that began it failed, and in the provider's words."""

    def at(self, now: float) -> Pause:
        """The same with times that are seconds from `now` on, none of them negative."""
        return self._replace(
            until=max(0.0, self.until - now), next_call=max(0.0, self.next_call - now)
        )

    def since(self, now: float) -> Pause:
        """What `at` gives, on a clock that shows `now`."""
        return self._replace(until=now + self.until, next_call=now + self.next_call)

    @property
    def is_over_for_all(self) -> bool:
        """Whether everybody may call the model once it is over."""
        return self.in_a_row < ONE_BY_ONE


NONE = Pause()

# D-128: probing from several runners at once kept a busy provider busy.
ONE_BY_ONE: Final = 2
"""A server that takes so many calls at once refuses one now and then: a short pause is enough. One
that refuses the next call too has a limit of another kind."""


def after(pause: Pause, news: PauseNews, now: float) -> tuple[Pause, bool]:
    """The pause after somebody's news, and whether they may make a call now.

    What belongs to an earlier pause changes nothing but what the provider asks for: many calls were
    in flight when it began, and all of them may fail. After two pauses without a reply one call may
    be made when the pause is over, and further ones as long after one another as it lasted.
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
        # Who asks for a short wait again and again, and refuses, does not know.
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
