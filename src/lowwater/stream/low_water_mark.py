"""The low-water mark: the mark of every input, and their minimum (OOP A.2.1).

A union, a join and the registers of an order-preserving merge follow the mark of each input, and
act when the least of them moves.

Invariant: neither the mark of an input nor the minimum ever goes back. A mark below the present one
is ignored, because a weaker promise changes nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from lowwater.stream.element import BEGINNING, END_OF_TIME


class LowWaterMark:
    """The mark of each input, and their minimum; all marks are ticks."""

    __slots__ = ("_marks", "_value")

    def __init__(self, inputs: Iterable[Hashable] = ()):
        self._marks: dict[Hashable, int] = dict.fromkeys(inputs, BEGINNING)
        self._value = BEGINNING

    @property
    def value(self) -> int:
        """The minimum: the bound that holds for all inputs together."""
        return self._value

    @property
    def slowest(self) -> Hashable:
        """The input that holds the mark back (the first of them if several do)."""
        return min(self._marks, key=lambda each: self._marks[each])

    def of(self, source: Hashable) -> int:
        """Return the mark of one input."""
        return self._marks[source]

    def advance(self, source: Hashable, mark: int) -> bool:
        """Move one input to a mark; return true if the minimum moved.

        An input not seen before joins with this mark. It may hold the minimum back from then on,
        but does not lower it.
        """
        old = self._marks.get(source)
        if old is not None and mark <= old:
            return False
        self._marks[source] = mark
        if old > self._value if old is not None else len(self._marks) > 1:
            return False  # another input holds the minimum back, or a new input cannot raise it
        least = min(self._marks.values())
        if least <= self._value:
            return False
        self._value = least
        return True

    def advance_all(self, marks: Mapping[Hashable, int]) -> bool:
        """Move many inputs at once; return true if the minimum moved."""
        held_back = False
        for source, mark in marks.items():
            old = self._marks.get(source, mark - 1)
            if mark > old:
                self._marks[source] = mark
                held_back = held_back or old <= self._value
        if not held_back:
            return False
        least = min(self._marks.values(), default=self._value)
        if least <= self._value:
            return False
        self._value = least
        return True

    def close(self, source: Hashable) -> bool:
        """Move an input that has ended to the end of time; return true if the minimum moved."""
        return self.advance(source, END_OF_TIME)

    def remove(self, sources: Iterable[Hashable]) -> bool:
        """Remove inputs, one after the other, which then hold nothing back; return true if the
        minimum moved.

        If no input is left, the minimum stays at the mark of the one removed last.
        """
        last = self._value
        for source in sources:
            last = self._marks.pop(source, last)
        least = min(self._marks.values(), default=last)
        if least <= self._value:
            return False
        self._value = least
        return True

    def marks(self) -> dict[Hashable, int]:
        """Return a copy of all marks, by input."""
        return dict(self._marks)

    def restore(self, marks: dict[Hashable, int], value: int) -> None:
        """Set the marks and the minimum to saved values of :meth:`marks` and :attr:`value`."""
        self._marks = dict(marks)
        self._value = value
