"""Staleness (UpStream §3.3, §5.1): how long the results of a key have been out of date.

A reference is the arrival of the oldest update that is not reflected yet. Staleness is the time
since the reference, and zero without one. Its integral is a sum of trapezoids, one for each
reference, so it is exact at any moment. *Application* staleness ends when results are delivered,
*queue* staleness when an update is taken out of the queue.

Invariant: the reference is the oldest update that arrived and was not taken (or not delivered).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Protocol, runtime_checkable

from lowwater.stream.duration import SECOND
from lowwater.stream.element import BEGINNING
from lowwater.updates.freshness import Freshness

SavedReference = tuple[int | None, int, float]
SavedAccount = tuple[SavedReference, SavedReference, tuple[int, ...], int, int, int | None, int]


class Reference:
    """The arrival of the oldest update that is not reflected, in nanoseconds, and the integral of
    its age."""

    __slots__ = ("_area", "_since", "oldest")

    def __init__(self, oldest: int | None = None, since: int = BEGINNING, area: float = 0.0):
        self.oldest = oldest
        self._since = since
        self._area = area

    def begin(self, arrival: int) -> None:
        """Make an update the reference if there is none.

        Its age counts from the moment at which the previous reference ended, if it arrived before
        that, during work.
        """
        if self.oldest is None:
            self.oldest = arrival
            self._since = max(self._since, arrival)

    def move(self, oldest: int | None, now: int) -> None:
        """Set another reference, or none, after updates became visible."""
        if self.oldest is None:
            return
        self._area = self.area(now)
        self.oldest, self._since = oldest, now

    def area(self, now: int) -> float:
        """Return the integral of staleness until now, in seconds squared."""
        if self.oldest is None:
            return self._area
        end, start = (now - self.oldest) / SECOND, (self._since - self.oldest) / SECOND
        return self._area + (end * end - start * start) / 2

    def age(self, now: int) -> int:
        """Return the staleness now, in nanoseconds."""
        return 0 if self.oldest is None else now - self.oldest

    def saved(self) -> SavedReference:
        """Return the snapshot."""
        return self.oldest, self._since, self._area


class Account:
    """The staleness of one key.

    ``behind`` holds the arrivals of updates that were not taken: all of them where every row is
    worked on, only the first where rows replace each other, because the newest shows them all.
    """

    __slots__ = (
        *("application", "begun", "behind", "delivered", "longest", "queue", "target", "updates"),
    )

    def __init__(self) -> None:
        self.application, self.queue = Reference(), Reference()
        self.behind: list[int] = []
        self.begun: int | None = None
        """Arrival of the first update; None before it."""
        self.updates = 0
        self.delivered = 0
        self.longest = 0
        """The greatest application staleness at which a result was shown, in nanoseconds."""
        self.target: int | None = None
        """The staleness that is asked for, in nanoseconds; None for any. It is not saved."""

    def arrived(self, arrival: int, count: int = 1, *, replaced: bool = True) -> None:
        """Count updates, the first of which arrived at ``arrival``.

        ``replaced`` is true if newer updates replace older ones.
        """
        self.waits(arrival)
        self.ended(arrival, count, arrival, replaced=replaced)

    def waits(self, arrival: int) -> None:
        """Count an update that waits in the queue, for queue staleness only."""
        self.queue.begin(arrival)
        if self.begun is None:
            self.begun = arrival

    def ended(self, arrival: int, count: int, unseen: int | None, *, replaced: bool = True) -> None:
        """Count updates, the first of which arrived at ``arrival``, for application staleness only.

        ``unseen`` is the arrival of the first update that the present work does not show; None if
        it shows all.
        """
        self.updates += count
        self.application.begin(arrival)
        if unseen is not None and (not replaced or not self.behind):
            self.behind.append(unseen)

    def passed(self) -> None:
        """Count an update whose result is shown at once, without waiting."""
        self.updates += 1
        self.delivered += 1

    def taken(self, now: int, until: int | None = None) -> None:
        """Record that updates up to an arrival, or all of them, left the queue."""
        if until is None:
            self.behind.clear()
        while self.behind and until is not None and self.behind[0] <= until:
            del self.behind[0]
        self.queue.move(self.unseen, now)

    def shown(self, now: int) -> None:
        """Count a result that shows all updates taken so far."""
        self.delivered += 1
        self.longest = max(self.longest, self.application.age(now))
        self.application.move(self.unseen, now)

    @property
    def missed(self) -> bool:
        """True if a result was shown after a staleness above the target."""
        return self.target is not None and self.longest > self.target

    @property
    def unseen(self) -> int | None:
        """Arrival of the oldest update that was not taken; None if all were."""
        return self.behind[0] if self.behind else None

    def areas(self, now: int) -> tuple[float, float]:
        """Return the integrals of application and queue staleness, in seconds squared."""
        return self.application.area(now), self.queue.area(now)

    def averages(self, length: float, now: int) -> KeyStaleness:
        """Return the averages over a length of time in seconds."""
        application, queue = self.areas(now)
        return KeyStaleness(
            application / length,
            queue / length,
            self.application.age(now) / SECOND,
            self.updates,
            self.delivered,
        )

    def saved(self) -> SavedAccount:
        """Return the snapshot."""
        both = self.application.saved(), self.queue.saved()
        return *both, tuple(self.behind), self.updates, self.delivered, self.begun, self.longest

    @classmethod
    def restored(cls, saved: SavedAccount) -> Account:
        """Return the account of a snapshot."""
        account = cls()
        application, queue, behind, updates, delivered, begun, longest = saved
        account.updates, account.delivered = updates, delivered
        account.begun, account.longest = begun, longest
        account.application, account.queue = Reference(*application), Reference(*queue)
        account.behind = list(behind)
        return account


ACCOUNT = (Account, Reference, Reference)
"""The types of the objects of an account."""


@dataclass(frozen=True, slots=True)
class KeyStaleness:
    """The staleness of the results of a key in seconds, on average and now."""

    application: float
    queue: float
    now: float
    """Age of the oldest update that is not shown, in seconds."""
    updates: int
    delivered: int


@dataclass(frozen=True, slots=True)
class Staleness:
    """The staleness of the results of all keys, on average over keys and by key, in seconds."""

    application: float
    queue: float
    weighted: float
    """Average application staleness, weighted by the weights of keys."""
    keys: int
    weight: float
    """Sum of the weights of all keys."""
    by_key: Mapping[tuple[object, ...], KeyStaleness]
    """The keys, the stalest first, at most ``MANY_KEYS`` of them."""
    freshness: Freshness | None = None
    """Which keys were staler than their targets; None if no target is given."""

    @classmethod
    def of(cls, parts: Sequence[Staleness]) -> Staleness:
        """Return the staleness of all keys from that of disjoint parts of them."""
        keys, weight = sum(each.keys for each in parts), sum(each.weight for each in parts)
        keyed = {key: each for part in parts for key, each in part.by_key.items()}
        fresh = [each.freshness for each in parts if each.freshness is not None]
        worst = nlargest(MANY_KEYS, keyed, key=lambda key: keyed[key].application)
        return cls(
            sum(each.application * each.keys for each in parts) / max(keys, 1),
            sum(each.queue * each.keys for each in parts) / max(keys, 1),
            sum(each.weighted * each.weight for each in parts) / (weight or 1.0),
            keys,
            weight,
            {key: keyed[key] for key in worst},
            Freshness.of(fresh) if fresh else None,
        )


@runtime_checkable
class MeasuresStaleness(Protocol):
    """A kernel of an update stream, which measures the staleness of its results."""

    def staleness(self) -> Staleness:
        """Return the staleness of the results, on average and now."""


MANY_KEYS = 1_000
"""Number of keys, the stalest, that are reported one by one."""


def staleness_of(
    accounts: Mapping[tuple[object, ...], tuple[Account, float]],
    begun: int,
    now: int,
    *,
    by_life: bool = False,
) -> Staleness:
    """Return the averages over all keys, from their accounts and weights.

    Each is an average over the time since the stream began or, with ``by_life``, since the first
    update of the key, for keys that are forgotten and begin again.
    """

    def seconds(account: Account) -> float:
        since = account.begun if by_life and account.begun is not None else begun
        return max(now - since, 1) / SECOND

    areas = {key: each.areas(now) for key, (each, _) in accounts.items()}
    lengths = {key: seconds(each) for key, (each, _) in accounts.items()}
    worst = nlargest(MANY_KEYS, areas, key=lambda key: areas[key][0] / lengths[key])
    weight = sum(each for _, each in accounts.values())
    weighted = sum(areas[key][0] * each for key, (_, each) in accounts.items())
    whole = sum(lengths.values()) or 1.0
    heavy = sum(lengths[key] * each for key, (_, each) in accounts.items()) or 1.0
    return Staleness(
        sum(application for application, _ in areas.values()) / whole,
        sum(queue for _, queue in areas.values()) / whole,
        weighted / heavy,
        len(areas),
        weight,
        {key: accounts[key][0].averages(lengths[key], now) for key in worst},
    )
