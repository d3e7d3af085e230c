"""Reports a benchmark's waits for its store."""

from __future__ import annotations

from socratic_cli.display.terminal import say


class WaitNotice:
    """Reports each kind of trouble once, and the end of the wait once."""

    def __init__(self) -> None:
        self._told: set[type[Exception]] = set()

    @property
    def waits(self) -> bool:
        """True while the last report was a trouble."""
        return bool(self._told)

    def update(self, error: Exception | None) -> None:
        """Report the present trouble; None ends the wait."""
        if error is None:
            if self._told:
                say("Going on: the store has the waiting replies.")
            self._told.clear()
        elif type(error) not in self._told:
            self._told.add(type(error))
            say(
                f"Waiting: {error}. The benchmark keeps paid replies and continues by itself as "
                "soon as the store takes them. Ctrl-C stops it."
            )
