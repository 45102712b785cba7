"""Which keys of an update stream were staler than their targets, as values of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice

from lowwater.stream.duration import SECOND, spell

MANY_MISSED = 100
"""Number of keys beyond their targets, the worst, that are reported one by one."""
NAMED = 3
"""Number of keys that a warning names."""


@dataclass(frozen=True, slots=True)
class MissedTarget:
    """A key that was staler than its target; all are in seconds."""

    longest: float
    """The greatest staleness of the key so far."""
    now: float
    target: float


@dataclass(frozen=True, slots=True)
class Freshness:
    """How many keys are, or were, staler than their targets."""

    keys: int
    """Number of keys that have a target."""
    beyond: int
    """Number of keys that are staler than their target now."""
    missed: int
    """Number of keys that were staler at some time, with those that were forgotten since."""
    worst: Mapping[tuple[object, ...], MissedTarget]
    """Keys that were staler, the greatest multiple of its target first, at most ``MANY_MISSED``."""

    @classmethod
    def of(cls, parts: Sequence[Freshness]) -> Freshness:
        """Return the freshness of all keys from that of disjoint parts of them."""
        keyed = {key: each for part in parts for key, each in part.worst.items()}
        return cls(
            sum(each.keys for each in parts),
            sum(each.beyond for each in parts),
            sum(each.missed for each in parts),
            worst_of(keyed),
        )

    def warning(self) -> str:
        """Return a sentence about the keys that missed their targets, and what to do."""
        named = ", ".join(
            f"{'/'.join(map(str, key))} ({spell(_rounded(each.longest))}, asked for"
            f" {spell(_rounded(each.target))})"
            for key, each in islice(self.worst.items(), NAMED)
        )
        more = ", ..." if self.missed > NAMED else ""
        are = "key was" if self.missed == 1 else "keys were"
        return (
            f"{self.missed:,} {are} staler than fresh_within= asks: {named}{more}. Give these keys"
            " weights=, send fewer keys through the query, or do less work for a row; on Spark"
            " also set budget=, the work of a batch. The metrics name the keys"
        )


def worst_of(
    missed: Mapping[tuple[object, ...], MissedTarget],
) -> dict[tuple[object, ...], MissedTarget]:
    """Return the keys whose greatest staleness is the greatest multiple of their target."""
    found = nlargest(MANY_MISSED, missed, key=lambda key: missed[key].longest / missed[key].target)
    return {key: missed[key] for key in found}


def _rounded(seconds: float) -> int:
    """Return nanoseconds, without fractions of a second above 10 s."""
    return round(round(seconds, 0 if seconds > 10 else 3) * SECOND)
