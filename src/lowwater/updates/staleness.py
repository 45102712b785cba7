"""Staleness (UpStream §3.3, §5.1): how long what is shown of a key has been out of date.

A reference is the arrival of the oldest update that is not reflected yet; staleness grows from it
with time and is zero without one. Its integral is made of trapezoids, one for each reference, so
what is told of it is exact at any moment. *Application* staleness ends where results are delivered,
*queue* staleness where an update is taken out of the queue.

Invariant: the reference is the oldest of the updates that arrived and were not taken (delivered).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from heapq import nlargest
from typing import Any, Protocol, runtime_checkable

from lowwater.stream.duration import SECOND
from lowwater.stream.element import BEGINNING

SavedReference = tuple[int | None, int, float]
SavedAccount = tuple[SavedReference, SavedReference, tuple[int, ...], int, int, int | None]


class Reference:
    """The oldest update that something does not reflect, and the integral of its age."""

    __slots__ = ("_area", "_since", "oldest")

    def __init__(self, oldest: int | None = None, since: int = BEGINNING, area: float = 0.0):
        self.oldest = oldest
        self._since = since
        self._area = area

    def begin(self, arrival: int) -> None:
        """An update came; it counts if nothing older is unreflected, and from where the one before
        stopped counting: it may have come earlier, during work."""
        if self.oldest is None:
            self.oldest = arrival
            self._since = max(self._since, arrival)

    def move(self, oldest: int | None, now: int) -> None:
        """Something became visible; the oldest that is not is now another, or none."""
        if self.oldest is None:
            return
        self._area = self.area(now)
        self.oldest, self._since = oldest, now

    def area(self, now: int) -> float:
        """The integral of staleness until now, in seconds squared."""
        if self.oldest is None:
            return self._area
        end, start = (now - self.oldest) / SECOND, (self._since - self.oldest) / SECOND
        return self._area + (end * end - start * start) / 2

    def age(self, now: int) -> int:
        """How stale it is now, in nanoseconds."""
        return 0 if self.oldest is None else now - self.oldest

    def saved(self) -> SavedReference:
        """Return the snapshot."""
        return self.oldest, self._since, self._area


class Account:
    """The staleness of one key.

    ``behind`` holds arrivals that were not taken: all of them where every row is worked on, and
    only the first where rows replace each other, because taking the newest takes them all.
    """

    __slots__ = ("application", "begun", "behind", "delivered", "queue", "updates")

    def __init__(self) -> None:
        self.application, self.queue = Reference(), Reference()
        self.behind: list[int] = []
        self.begun: int | None = None
        """When the first update came."""
        self.updates = 0
        self.delivered = 0

    def arrived(self, arrival: int, count: int = 1, *, replaced: bool = True) -> None:
        """Updates came, the first at a time; ``replaced``: newer ones take their place."""
        self.waits(arrival)
        self.ended(arrival, count, arrival, replaced=replaced)

    def waits(self, arrival: int) -> None:
        """An update came that waits in the queue."""
        self.queue.begin(arrival)
        if self.begun is None:
            self.begun = arrival

    def ended(self, arrival: int, count: int, unseen: int | None, *, replaced: bool = True) -> None:
        """Updates came that the application knows of, the first at a time; ``unseen``: when the
        first came that what is worked on does not show."""
        self.updates += count
        self.application.begin(arrival)
        if unseen is not None and (not replaced or not self.behind):
            self.behind.append(unseen)

    def taken(self, now: int, until: int | None = None) -> None:
        """Updates up to an arrival (all, if none is named) left the queue to be worked on."""
        if until is None:
            self.behind.clear()
        while self.behind and until is not None and self.behind[0] <= until:
            del self.behind[0]
        self.queue.move(self.behind[0] if self.behind else None, now)

    def shown(self, now: int) -> None:
        """What was taken is delivered."""
        self.delivered += 1
        self.application.move(self.behind[0] if self.behind else None, now)

    def areas(self, now: int) -> tuple[float, float]:
        """The integrals of application and queue staleness, in seconds squared."""
        return self.application.area(now), self.queue.area(now)

    def told(self, length: float, now: int) -> KeyStaleness:
        """The averages over so many seconds."""
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
        return *both, tuple(self.behind), self.updates, self.delivered, self.begun

    @classmethod
    def restored(cls, saved: SavedAccount) -> Account:
        """Continue from a snapshot."""
        account = cls()
        application, queue, behind, account.updates, account.delivered, account.begun = saved
        account.application, account.queue = Reference(*application), Reference(*queue)
        account.behind = list(behind)
        return account


ACCOUNT = (Account, Reference, Reference)
"""The objects of an account."""


@dataclass(frozen=True, slots=True)
class KeyStaleness:
    """How stale what is shown of a key was, on average, in seconds, and is."""

    application: float
    queue: float
    now: float
    """How old the oldest update is that is not shown."""
    updates: int
    delivered: int


@dataclass(frozen=True, slots=True)
class Staleness:
    """How stale what is shown was on average over all keys, in seconds, and by key."""

    application: float
    queue: float
    weighted: float
    """Application staleness with each key counting as much as its weight says."""
    keys: int
    weight: float
    """The weights of all keys together."""
    by_key: Mapping[tuple[object, ...], KeyStaleness]
    """The keys, the stalest first; where there are very many, only so many of them."""

    @classmethod
    def of(cls, parts: Sequence[Staleness]) -> Staleness:
        """That of all keys, from those of some each."""
        keys, weight = sum(each.keys for each in parts), sum(each.weight for each in parts)
        told = {key: each for part in parts for key, each in part.by_key.items()}
        worst = nlargest(MANY_KEYS, told, key=lambda key: told[key].application)
        return cls(
            sum(each.application * each.keys for each in parts) / max(keys, 1),
            sum(each.queue * each.keys for each in parts) / max(keys, 1),
            sum(each.weighted * each.weight for each in parts) / (weight or 1.0),
            keys,
            weight,
            {key: told[key] for key in worst},
        )

    def plain(self) -> dict[str, object]:
        """As plain values, for messages."""
        keys = [(list(key), *astuple(each)) for key, each in self.by_key.items()]
        return {
            "averages": (self.application, self.queue, self.weighted, self.keys, self.weight),
            "by_key": keys,
        }

    @classmethod
    def plainly(cls, told: Mapping[str, Any]) -> Staleness:
        """From what :meth:`plain` gave."""
        by_key = {tuple(key): KeyStaleness(*numbers) for key, *numbers in told["by_key"]}
        application, queue, weighted, keys, weight = told["averages"]
        return cls(application, queue, weighted, keys, weight, by_key)


@runtime_checkable
class Shows(Protocol):
    """A kernel that shows updates, and knows how stale what it shows is."""

    def staleness(self) -> Staleness:
        """How stale what is shown was, and is."""


MANY_KEYS = 1_000
"""So many keys are told of one by one, the stalest."""


def staleness_of(
    accounts: Mapping[tuple[object, ...], tuple[Account, float]],
    begun: int,
    now: int,
    *,
    by_life: bool = False,
) -> Staleness:
    """The averages over all keys, from their accounts and weights.

    Each is an average over the time since the stream began or, ``by_life``, since the key did:
    where keys are forgotten and come anew, what was long before them says nothing of them.
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
        {key: accounts[key][0].told(lengths[key], now) for key in worst},
    )
