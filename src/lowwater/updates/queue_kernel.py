"""The base of all queues of update streams, from which portions leave when there is time.

A portion is one update, or the number that takes about ``PORTION`` nanoseconds of work. In batches
it is the number that fits into the budget of the batch, by the cost of a row in earlier batches, so
that a batch that runs again takes the same rows.

Invariant: after the last input has ended, all waiting rows leave, and then the end.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.operators.kernel import Host, Kernel
from lowwater.operators.metric import Mean, Metric, Readings, Texts, size, total
from lowwater.state.store import ChunkStore
from lowwater.stream.duration import SECOND
from lowwater.stream.element import END_OF_TIME, Chunk, Element, End
from lowwater.stream.time_domain import TimeDomain, clock_times
from lowwater.updates.freshness import Freshness
from lowwater.updates.key_queue import KeyQueue
from lowwater.updates.options import Key, Updates
from lowwater.updates.pace import Pace
from lowwater.updates.staleness import Account, Staleness, staleness_of
from lowwater.updates.targets import KEYS_BEYOND, KEYS_MISSED, freshness_of

Numbers = NDArray[np.int64]
PORTION = 20_000_000
"""Nanoseconds of work in a portion where rows can be read at any moment."""

SCHEDULE = Metric(
    "updates_schedule", str, "state", Texts(), "schedule", "The order in which keys are served."
)
WINDOWS = Metric(
    "updates_windows", str, "state", Texts(), "windows", "Which windows of a key are worked on."
)
KEYS = size("updates_keys", "keys", "Keys that are known.", "keys")
WAITING = size(
    "updates_waiting", "waiting", "Rows, or windows, that wait to be worked on.", "count"
)
GIVEN_UP = total(
    "updates_given_up",
    "given up for newer ones",
    "Rows, or windows, that newer ones of their keys replaced before they were worked on.",
    "count",
)
OUTDATED = total(
    "updates_outdated_rows",
    "outdated when they came",
    "Rows that came when a newer one of their key was there already.",
)
EXPIRED = total(
    "updates_expired_keys",
    "keys expired",
    "Keys that were forgotten because no row came for long enough.",
    "keys",
)
DELETED = total("updates_deleted_keys", "keys deleted", "Keys that a row deleted.", "keys")
WORKED_ON = size("updates_worked_on", "worked on", "Windows that are being worked on.", "windows")
COMPLETE = total(
    "updates_complete_windows",
    "windows complete",
    "Windows all rows of which have come.",
    "windows",
)
SHOWN = total(
    "updates_shown_windows", "windows shown", "Windows whose result was shown.", "windows"
)
SECONDS_A_ROW = Metric(
    "updates_seconds_a_row",
    float,
    "seconds",
    Mean(KEYS),
    "seconds a row",
    "The work that a row costs.",
)


@dataclass(frozen=True)
class QueuedRows:
    """The rows that arrive at a queue of rows, alike on all its inputs."""

    schema: Mapping[str, pl.DataType]
    domains: Mapping[str, TimeDomain]
    """The time columns, the main one first, with their domains."""
    ports: int = 1
    """Number of inputs. With several, one row of each key and time is kept."""
    prefer: int | None = None
    """The input whose rows replace waiting ones of the same key and time; None for none."""
    arrival: str | None = None
    """The column of arrival times; None if there is none."""
    expire: int | None = None
    """Ticks after its newest row at which a key is forgotten; None for never."""


class QueueKernel(Kernel):
    """Holds updates until there is time to work on them."""

    queues: ClassVar[bool] = True

    def __init__(
        self,
        store: ChunkStore,
        by: Updates,
        host: Host,
        arrival: str | None,
        ports: int = 1,
    ):
        super().__init__(store, ports, host)
        self._by, self._now, self._arrival = by, host.now, arrival
        self._shift = 0  # nanoseconds from arrival times in rows to clock times
        self._pace = Pace()
        self._served = False  # True if a portion has left in a batch
        self._ending = False  # True if all inputs have ended
        self._left = 0
        """Number of rows in the last portion."""
        self._in_work: list[Account] = []
        """The account of each result that the last portion completes."""
        self._warned = self._to_warn = False
        """True if a key was seen to miss its target."""

    def _arrivals(self, chunk: Chunk) -> Numbers:
        """Return the arrivals of rows in clock nanoseconds: those in the column of arrival times,
        or now if there is no such column or rows come in batches in real time."""
        if self._arrival is None or (self.host.in_batches and self.host.hurried):
            return np.full(chunk.height, self._now(), np.int64)
        return clock_times(chunk[self._arrival]) + self._shift

    def shift_arrivals(self, nanoseconds: int) -> None:
        """Set the difference from arrival times in rows to the clock, in nanoseconds."""
        self._shift = nanoseconds

    # ---- work ------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _has_work(self) -> bool:
        """True if something can leave now."""

    @property
    @abstractmethod
    def _backlog(self) -> float:
        """Approximate number of rows that can leave now."""

    @abstractmethod
    def _dequeue(self, rows: int, now: int) -> list[Element]:
        """Remove about ``rows`` rows, and return them with the punctuation that follows."""

    @property
    def has_work(self) -> bool:
        """True if a portion may leave now; in batches one may, until all inputs have ended."""
        return self._has_work and (not self._served or self._ending)

    def work_on(self) -> Sequence[Element]:
        """Return a portion, followed by the end if it was the last."""
        now = self._now()
        if self.host.in_batches and not self._served:
            self._pace.begin(now)
        self._served = self.host.in_batches
        elements = self._dequeue(self._portion(), now)
        return [*elements, *(self._end() if self._ending and not self._has_work else [])]

    def end_portion(self, nanoseconds: int, now: int) -> None:
        """Count the results of the portion as shown, and update the cost of a row."""
        self._pace.learn(self._left, nanoseconds)
        for account in self._in_work:
            account.shown(now)
        if not self._warned and any(account.missed for account in self._in_work):
            self._warned, self._to_warn = True, not self.host.in_batches
        self._in_work, self._left = [], 0

    def notes(self) -> Sequence[str]:
        """Return, once, a warning of keys that missed their targets; in batches the driver warns,
        which sees all buckets."""
        found = list(super().notes())
        if self._to_warn:
            self._to_warn = False
            found.append(self._freshness().warning())
        return found

    def _freshness(self) -> Freshness:
        keys = self._keys_of_queue
        accounts = ((key, account) for key, (account, _) in keys.accounts().items())
        return freshness_of(accounts, keys.missed, self._now())

    def _readings_of_targets(self) -> Readings:
        """Return how many keys are, and were, staler than asked for, where something is."""
        if not self._by.has_targets:
            return Readings()
        found = self._freshness()
        return Readings({KEYS_BEYOND: found.beyond, KEYS_MISSED: found.missed})

    def _portion(self) -> int:
        if self.host.in_batches:
            budget = self._by.budget or self._pace.best(self._backlog)
            return END_OF_TIME if self._ending else self._pace.fitting(budget)
        return 1 if self.host.singly else self._pace.fitting(PORTION)

    def _close(self) -> list[Element]:
        """Record that all inputs have ended; return the end if nothing waits."""
        self._ending = True
        return [] if self._has_work else self._end()

    def _end(self) -> list[Element]:
        self._ending = False
        self.settle()  # removes the pages of the rows that left from the store
        return [End()]

    # ---- metrics ---------------------------------------------------------------------------

    def _seconds_a_row(self) -> float | None:
        """Return the seconds of work that a row costs; None before the first."""
        return self._pace.cost / SECOND if self._pace.cost else None

    def _forgotten(self) -> Readings:
        """Return how many keys were forgotten, where keys end, and how many missed targets."""
        found = self._readings_of_targets()
        if not self._by.forgets:
            return found
        keys = self._keys_of_queue
        return found | {EXPIRED: keys.expired, DELETED: keys.deleted}

    @property
    @abstractmethod
    def _keys_of_queue(self) -> KeyQueue[Any]:
        """The keys of the queue."""

    def pending(self, key: Key | None = None, *, delivered: bool = False) -> dict[Key, int]:
        """Return the keys whose results do not show all updates, or one of them, each with the
        arrival of the oldest update that they do not show, in clock nanoseconds.

        With ``delivered`` the results of the portion that is worked on count as shown.
        """
        cells = self._keys_of_queue.cells
        some = list(cells.values()) if key is None else [cells[key]] if key in cells else []
        shown = {id(account) for account in self._in_work} if delivered else set()
        found: dict[Key, int] = {}
        for cell in some:
            account = cell.account
            oldest = account.unseen if id(account) in shown else account.application.oldest
            if oldest is not None:
                found[cell.key] = oldest
        return found

    def staleness(self) -> Staleness:
        """Return the staleness of the results, on average and now."""
        now = self._now()
        keys = self._keys_of_queue
        begun = now if keys.begun is None else keys.begun
        found = staleness_of(keys.accounts(), begun, now, by_life=self._by.forgets)
        return replace(found, freshness=self._freshness()) if self._by.has_targets else found

    def snapshot(self) -> dict[str, Any]:
        """Return the snapshot."""
        return super().snapshot() | {
            "pace": self._pace.saved(),
            "ending": self._ending,
            "warned": self._warned,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._pace.restore(saved["pace"])
        self._ending, self._warned = saved["ending"], saved["warned"]
