"""Whether a channel is less complete than it should be, since when, and why.

What is promised is the share of all rows so far. A channel falls short when that share is more than
``NEAR`` below the one asked for, or when that of recent rows is, and chance does not explain it.
It is judged where the slack is chosen, at row counts: how a stream is cut changes nothing. An
episode ends when both are nearer than half of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

FEW, UNSEEN, GROWN = "few", "unseen", "grown"
WORDS = {
    FEW: "too few rows have come to know how late rows are",
    UNSEEN: "rows came that were later than any before them",
    GROWN: "more rows are late than before",
}
"""Why a channel falls short."""

NEAR = 0.003
"""How far below the share asked for is near enough."""
ROWS = 100
"""Before so many rows nothing is said of a share."""
DEVIATIONS, SOME = 3.0, 10.0
"""So many standard deviations of how many rows are late by chance, but no more rows than this, say
nothing of the whole run."""
CHANCE = 0.6
"""Among recent rows the share of late ones may exceed the allowed one by this part of it."""
FAR = 2
"""Rows are later than any before if their lateness is so many times the longest remembered."""
WHILE = 15.0
"""They explain a shortfall as long as so many late rows are allowed to have come since."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """An episode in which a channel is less complete than it should be."""

    reason: str
    """``few``, ``unseen`` or ``grown``."""
    since: int
    """The newest time when it began, in ticks."""

    @property
    def words(self) -> str:
        """The reason in words."""
        return WORDS[self.reason]


class Watch:
    """Tells when a channel falls short; ``missing`` is the allowed share of late rows."""

    __slots__ = ("_missing", "_rows", "_since_unseen", "latest", "now")

    def __init__(self, missing: float):
        self._missing = missing
        self._rows = 0
        self._since_unseen: int | None = None  # rows since some were later than any before
        self.now: Shortfall | None = None
        self.latest: Shortfall | None = None
        """The last episode that began, over or not."""

    def look(
        self, rows: int, late: int, recent: float, newest: int, known: bool, unseen: bool
    ) -> None:
        """Look at a channel of which so many rows, and this share of recent ones, were late.

        ``known`` says that there were enough rows to learn from; ``unseen`` that since the last
        look rows were late that were much later than any remembered.
        """
        came, self._rows = rows - self._rows, rows
        if unseen:
            self._since_unseen = 0
        elif self._since_unseen is not None:
            self._since_unseen += came
        part = 1.0 if self.now is None else 0.5
        short = rows >= ROWS and (
            late > self._by_chance(rows) + (self._missing + NEAR * part) * rows
            or recent > self._missing + max(NEAR, CHANCE * self._missing) * part
        )
        if not short:
            self.now = None
        elif self.now is None:
            self.now = self.latest = Shortfall(self._reason(known), newest)

    def _by_chance(self, rows: int) -> float:
        return min(SOME, DEVIATIONS * sqrt(self._missing * rows))

    def _reason(self, known: bool) -> str:
        if not known:
            return FEW
        since = self._since_unseen
        return UNSEEN if since is not None and since <= WHILE / self._missing else GROWN

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        return {
            "rows": self._rows,
            "unseen": self._since_unseen,
            "latest": None if self.latest is None else [self.latest.reason, self.latest.since],
            "short": self.now is not None,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._rows, self._since_unseen = saved["rows"], saved["unseen"]
        self.latest = None if saved["latest"] is None else Shortfall(*saved["latest"])
        self.now = self.latest if saved["short"] else None
