"""The readers of a shared queue, and what each has been given of each key.

A *reader* is a query, or several that can only be given rows together. Each reader is *behind* in
the keys whose newest waiting row it has not been given.

Invariant: a key has a waiting row exactly while some reader is behind in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lowwater.updates.keys import KeyCell
from lowwater.updates.options import Key
from lowwater.updates.staleness import Account


@dataclass(frozen=True)
class Reader:
    """Queries that are given rows of a shared queue together."""

    queries: frozenset[int]
    """The numbers of the queries."""
    weight: float = 1.0
    """Weight of the staleness of each of its results: the sum of the weights of its queries."""


class ReaderKey:
    """A key for one reader: since when the reader is behind, and how stale its result is."""

    __slots__ = ("account", "behind", "cell", "first", "reader", "weight")

    def __init__(self, cell: SharedCell, reader: int, weight: float):
        self.cell, self.reader, self.weight = cell, reader, weight
        self.account = Account()
        self.behind = False
        """True if the reader has not been given the row that waits."""
        self.first = 0
        """Arrival of the first update that the reader was not given, in clock nanoseconds."""

    @property
    def key(self) -> Key:
        """The values of the key."""
        return self.cell.key

    @property
    def gap(self) -> float | None:
        """Average nanoseconds between updates of the key; None before the second."""
        return self.cell.gap

    def saved(self) -> Any:
        """Return the snapshot."""
        return self.behind, self.first, self.account.saved()

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        self.behind, self.first, account = saved
        self.account = Account.restored(account)


class SharedAccount(Account):
    """The staleness of a key for all readers: each has an account of its own."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Sequence[ReaderKey]):
        self._keys = keys
        super().__init__()

    def arrived(self, arrival: int, count: int = 1, *, replaced: bool = True) -> None:
        """Count updates for every reader, the first of which arrived at ``arrival``."""
        for each in self._keys:
            if not each.behind:
                each.behind, each.first = True, arrival
            each.account.arrived(arrival, count, replaced=replaced)
        self.updates += count

    def passed(self) -> None:
        """Count an update that every reader was given at once, without waiting."""
        for each in self._keys:
            each.account.passed()
        super().passed()


class SharedCell(KeyCell):
    """A key of a shared queue: what its cell in any queue has, and a part for each reader."""

    __slots__ = ("keys",)

    def __init__(self, key: Key, weight: float, number: int, readers: Sequence[Reader]):
        super().__init__(key, weight, number)
        self.keys = tuple(
            ReaderKey(self, at, weight * reader.weight) for at, reader in enumerate(readers)
        )
        self.account = SharedAccount(self.keys)

    def saved(self) -> dict[str, Any]:
        """Return the snapshot."""
        return super().saved() | {"readers": [each.saved() for each in self.keys]}

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        counted = self.account
        self.account = SharedAccount(self.keys)
        self.account.updates, self.account.delivered = counted.updates, counted.delivered
        for each, own in zip(self.keys, saved["readers"], strict=True):
            each.restore(own)
