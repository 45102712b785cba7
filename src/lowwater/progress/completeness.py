"""The completeness of channels with a learned mark, and the episodes in which they fall short.

The target of a contract is a share of all rows so far. A channel falls short when that share is
more than ``NEAR`` below the target, or when the share of recent rows is, and chance does not
explain it. This is judged when the slack is chosen, which is at fixed numbers of rows, so the cut
of a stream into chunks changes nothing. An episode ends when both shares are less than half of that
distance below the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

FEW, UNSEEN, GROWN = "few", "unseen", "grown"
WORDS = {
    FEW: "too few rows have come to measure how late rows are",
    UNSEEN: "rows came that were later than any before them",
    GROWN: "more rows are late than before",
}
"""The reasons for which a channel falls short, as phrases for people."""

NEAR = 0.003
"""Distance below the target at which a share still counts as reached."""
ROWS = 100
"""Number of rows before which a share is not judged."""
DEVIATIONS, MOST_BY_CHANCE = 3.0, 10.0
"""Number of late rows over the whole run that chance explains: ``DEVIATIONS`` standard deviations,
and at most ``MOST_BY_CHANCE`` rows."""
CHANCE = 0.6
"""Part of the allowed share by which the share of recent late rows may exceed it by chance."""
UNSEEN_FACTOR = 2
"""Rows are later than any before if their lateness is above this multiple of the longest so far."""
UNSEEN_LASTS = 15.0
"""Unseen lateness is the reason for a shortfall until this many late rows are allowed after it."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """An episode in which a channel is less complete than its target."""

    reason: str
    """``few``, ``unseen`` or ``grown``."""
    since: int
    """The newest time when it began, in ticks."""

    @property
    def words(self) -> str:
        """The reason as a phrase for people."""
        return WORDS[self.reason]


@dataclass(frozen=True, slots=True)
class Completeness:
    """The completeness of a channel, or of a whole stream; all shares are of its rows."""

    rows: int
    """Number of rows so far."""
    late: int
    """Number of late rows so far."""
    target: float
    """The share that the contract states."""
    expected: float
    """The share expected of the rows now coming, by the recent ones."""
    recent: float
    """The share of recent rows that were on time."""
    slack: int | None
    """The slack in ticks; None before the first mark."""
    reason: str | None = None
    """Reason for which the channel falls short of the target, a key of ``WORDS``; None if it does
    not."""
    since: int | None = None
    """The newest time, in ticks, when the shortfall began; None if the channel does not fall
    short."""

    @property
    def achieved(self) -> float:
        """Share of all rows so far that were on time."""
        return 1 - self.late / self.rows if self.rows else 1.0


def combine(parts: Sequence[Completeness]) -> Completeness:
    """Return the completeness of a stream from that of its channels.

    The slack is the longest of them; the shortfall is the one that began first.
    """
    rows = sum(each.rows for each in parts)
    slacks = [each.slack for each in parts if each.slack is not None]
    short = min((each for each in parts if each.since is not None), key=_begun, default=None)
    return Completeness(
        rows,
        sum(each.late for each in parts),
        parts[0].target,
        sum(each.rows * each.expected for each in parts) / rows if rows else 1.0,
        sum(each.rows * each.recent for each in parts) / rows if rows else 1.0,
        max(slacks, default=None),
        None if short is None else short.reason,
        None if short is None else short.since,
    )


def _begun(part: Completeness) -> int:
    assert part.since is not None
    return part.since


class ShortfallWatch:
    """Detects when a channel falls short; ``missing`` is the allowed share of late rows."""

    __slots__ = ("_missing", "_rows", "_since_unseen", "latest", "now")

    def __init__(self, missing: float):
        self._missing = missing
        self._rows = 0
        self._since_unseen: int | None = None  # rows since some were later than any before
        self.now: Shortfall | None = None
        """The present episode; None if the channel is as complete as it should be."""
        self.latest: Shortfall | None = None
        """The latest episode, ended or not."""

    def update(
        self, *, rows: int, late: int, recent: float, newest: int, known: bool, unseen: bool
    ) -> None:
        """Begin or end an episode.

        ``rows`` and ``late`` count all rows so far; ``recent`` is the share of late rows among
        recent ones; ``newest`` is the newest time in ticks. ``known`` is true if there were enough
        rows to learn from; ``unseen`` if rows since the last call were later than any before.
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
        return min(MOST_BY_CHANCE, DEVIATIONS * sqrt(self._missing * rows))

    def _reason(self, known: bool) -> str:
        if not known:
            return FEW
        since = self._since_unseen
        return UNSEEN if since is not None and since <= UNSEEN_LASTS / self._missing else GROWN

    def snapshot(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` needs."""
        return {
            "rows": self._rows,
            "unseen": self._since_unseen,
            "latest": None if self.latest is None else [self.latest.reason, self.latest.since],
            "short": self.now is not None,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._rows, self._since_unseen = saved["rows"], saved["unseen"]
        self.latest = None if saved["latest"] is None else Shortfall(*saved["latest"])
        self.now = self.latest if saved["short"] else None
