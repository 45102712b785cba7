"""The output punctuation of a join: each promise once, and only on attributes that are awaited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lowwater.stream.element import BEGINNING, END_OF_TIME, Element, Punctuation


def any_of(*promises: tuple[tuple[str, int], ...]) -> dict[str, int]:
    """Return the bounds that hold if one of some promises does: of a column the least bound."""
    bounds: dict[str, int] = {}
    for name, mark in (bound for promise in promises for bound in promise):
        bounds[name] = min(mark, bounds.get(name, mark))
    return bounds


class OutputMarks:
    """The last punctuation emitted, by the attributes it is on.

    ``awaited`` are the attributes that a consumer uses; None: all.

    Invariant: the punctuation on the same attributes never goes back and is never repeated.
    """

    def __init__(self, awaited: frozenset[str] | None = None):
        self.awaited = awaited
        self._emitted: dict[tuple[str, ...], tuple[int, ...]] = {}

    def of(self, attribute: str) -> int:
        """Return the last mark emitted on one attribute alone."""
        return self._emitted.get((attribute,), (BEGINNING,))[0]

    def advance(self, bounds: Mapping[str, int]) -> list[Element]:
        """Return the promise of at least one of the bounds, if it exceeds the last one."""
        values = bounds.values()
        if BEGINNING in values or all(value >= END_OF_TIME for value in values):
            return []
        if self.awaited is not None and not bounds.keys() <= self.awaited:
            return []
        promise = Punctuation.jointly(bounds)
        if not promise.goes_beyond(self._emitted.get(promise.attributes)):
            return []
        self._emitted[promise.attributes] = promise.values
        return [promise]

    def snapshot(self) -> Any:
        """Return the last punctuation."""
        return dict(self._emitted)

    def restore(self, saved: Any) -> None:
        """Continue from a snapshot."""
        self._emitted = dict(saved)
