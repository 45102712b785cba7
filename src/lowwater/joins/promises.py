"""The punctuation that a join has received and emitted, by the attributes it is on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from lowwater.operators.kernel import Request
from lowwater.stream.element import BEGINNING, END_OF_TIME, Element, Punctuation


def any_of(*promises: tuple[tuple[str, int], ...]) -> dict[str, int]:
    """Return the bounds of the promise that at least one of ``promises`` holds.

    The bound of a column is the least of its bounds.
    """
    bounds: dict[str, int] = {}
    for name, mark in (bound for promise in promises for bound in promise):
        bounds[name] = min(mark, bounds.get(name, mark))
    return bounds


class InputPromises:
    """The last punctuation of each input, in the names of the output.

    ``names`` has, for each input, its progressing columns with their names in the output.

    Invariant: the punctuation of an input on the same attributes never goes back.
    """

    def __init__(self, names: Sequence[dict[str, str]]):
        self._names = list(names)
        self._last: list[dict[tuple[str, ...], Punctuation]] = [{} for _ in names]

    def of(self, port: int) -> list[Punctuation]:
        """Return the last punctuation of an input on each set of attributes."""
        return list(self._last[port].values())

    def advance(self, port: int, promise: Punctuation) -> bool:
        """Record the punctuation of an input; return false if nothing follows from it.

        That is so if the output lacks one of its attributes, or if it does not exceed the last one.
        """
        known, before = promise.renamed(self._names[port]), self._last[port].get(promise.attributes)
        if known is None or not known.goes_beyond(before.values if before else None):
            return False
        self._last[port][promise.attributes] = known
        return True

    def end(self, port: int, time: str) -> None:
        """Raise the marks of an input that ended to the end of time, also that of its ``time``."""
        for attributes in [(time,), *self._last[port]]:
            bounds = tuple((self._names[port][name], END_OF_TIME) for name in attributes)
            self._last[port][attributes] = Punctuation(bounds)

    def missing(self, requests: Sequence[Request], open_: Set[int]) -> list[Request]:
        """Return the requests that no punctuation meets; ``open_`` are the inputs not ended."""
        return [each for each in requests if each.port in open_ and not self._meets(each)]

    def _meets(self, request: Request) -> bool:
        needed = {self._names[request.port][name]: mark for name, mark in request.bounds}
        return any(
            all(mark >= needed.get(name, END_OF_TIME) for name, mark in known.bounds)
            for known in self._last[request.port].values()
        )

    def snapshot(self) -> Any:
        """Return the last punctuation of each input."""
        return [dict(each) for each in self._last]

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        self._last = [dict(each) for each in saved]


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
        """Set the state to that of a snapshot."""
        self._emitted = dict(saved)
