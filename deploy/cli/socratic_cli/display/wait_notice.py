"""What a person is told while a benchmark waits for its store."""

from __future__ import annotations

from socratic_cli.display.terminal import say


class WaitNotice:
    """Says once for which kind of trouble a benchmark waits, and once that it goes on."""

    def __init__(self) -> None:
        self._told: set[type[Exception]] = set()

    @property
    def waits(self) -> bool:
        """Whether the last that was heard of it was a trouble."""
        return bool(self._told)

    def update(self, error: Exception | None) -> None:
        """Tell what the benchmark waits for now; None if it waits for nothing."""
        if error is None:
            if self._told:
                say("Going on: what waited for the store is stored.")
            self._told.clear()
        elif type(error) not in self._told:
            self._told.add(type(error))
            say(
                f"Waiting: {error}. Replies that were paid for are kept, and the benchmark goes on "
                "by itself as soon as the store takes them. Ctrl-C stops it."
            )
