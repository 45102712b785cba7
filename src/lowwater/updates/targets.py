"""Targets of staleness (UpStream §3.3): how old what is shown of a key may be, and which keys were
staler.

A key misses its target when a result of it is shown after it was stale for longer than the target,
or when it is staler than that now. Staleness is greatest just before a result is shown, so no miss
of a key that is shown goes unnoticed. Targets are measured and reported; the order in which keys
are served follows from ``schedule=`` and ``weights=`` alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from lowwater.operators.metric import size, total
from lowwater.stream.duration import SECOND
from lowwater.updates.freshness import Freshness, MissedTarget, worst_of
from lowwater.updates.staleness import Account

KEYS_BEYOND = size(
    "updates_keys_beyond_target",
    "keys staler than their target",
    "Keys that are staler now than fresh_within= asks.",
    "keys",
)
KEYS_MISSED = total(
    "updates_keys_missed_target",
    "keys that missed their target",
    "Keys that were staler at some time than fresh_within= asks.",
    "keys",
)


def freshness_of(
    accounts: Iterable[tuple[tuple[object, ...], Account]], forgotten: int, now: int
) -> Freshness:
    """Return the freshness of keys from their accounts; ``forgotten`` is the number of forgotten
    keys that missed their targets."""
    keys = beyond = 0
    missed: dict[tuple[object, ...], MissedTarget] = {}
    for key, account in accounts:
        if account.target is None:
            continue
        keys += 1
        age = account.application.age(now)
        beyond += age > account.target
        longest = max(age, account.longest)
        if longest > account.target:
            missed[key] = MissedTarget(longest / SECOND, age / SECOND, account.target / SECOND)
    return Freshness(keys, beyond, forgotten + len(missed), worst_of(missed))
