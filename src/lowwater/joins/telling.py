"""Which promises a join tells: what follows from its inputs', once, and only what is waited for.

Invariant: what is told of the same attributes never goes back and never comes twice.
"""

from __future__ import annotations

from collections.abc import Mapping

from lowwater.stream.element import BEGINNING, END_OF_TIME, Element, Punctuation

Told = dict[tuple[str, ...], tuple[int, ...]]
"""The last bounds told, by the attributes they are on."""


def either(*parts: tuple[tuple[str, int], ...]) -> dict[str, int]:
    """One promise or another: all bounds, the lesser where both have one on a column."""
    bounds: dict[str, int] = {}
    for name, mark in (bound for part in parts for bound in part):
        bounds[name] = min(mark, bounds.get(name, mark))
    return bounds


def once(bounds: Mapping[str, int], told: Told, awaited: frozenset[str] | None) -> list[Element]:
    """A promise of at least one of the bounds, if it says more than was told before.

    ``awaited`` are the attributes somebody waits for; None: all.
    """
    values = bounds.values()
    if BEGINNING in values or all(value >= END_OF_TIME for value in values):
        return []
    if awaited is not None and not bounds.keys() <= awaited:
        return []
    promise = Punctuation.jointly(bounds)
    if not promise.goes_beyond(told.get(promise.attributes)):
        return []
    told[promise.attributes] = promise.values
    return [promise]
