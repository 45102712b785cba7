"""The low-water mark: the last promise of every input, and their minimum (OOP A.2.1).

Union, join, the channels of a source and the registers of an order-preserving merge all need the
same thing: remember the last bound of each input and know when the least of them moves. Marks of
one input never go back; a bound that does is ignored, because a weaker promise changes nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from lowwater.stream.element import BEGINNING, END_OF_TIME


class LowWaterMark:
    """The last mark of each input, and their minimum."""

    __slots__ = ("_marks", "_value")

    def __init__(self, inputs: Iterable[Hashable] = ()):
        self._marks: dict[Hashable, int] = dict.fromkeys(inputs, BEGINNING)
        self._value = BEGINNING

    @property
    def value(self) -> int:
        """The bound that holds for all inputs together."""
        return self._value

    @property
    def slowest(self) -> Hashable:
        """The input that holds the mark back (the first of them if several do)."""
        return min(self._marks, key=lambda each: self._marks[each])

    def of(self, source: Hashable) -> int:
        """The last mark of one input."""
        return self._marks[source]

    def advance(self, source: Hashable, mark: int) -> bool:
        """Take a new mark of one input; true if the minimum moved.

        An input not seen before joins with this mark and may only lower what *will* be promised:
        the minimum itself never goes back.
        """
        old = self._marks.get(source)
        if old is not None and mark <= old:
            return False
        self._marks[source] = mark
        if old > self._value if old is not None else len(self._marks) > 1:
            return False  # the least is held back by another, or one more cannot raise it
        least = min(self._marks.values())
        if least <= self._value:
            return False
        self._value = least
        return True

    def advance_all(self, marks: Mapping[Hashable, int]) -> bool:
        """Take new marks of many inputs at once; true if the minimum moved."""
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
        """Say that an input has ended; true if the minimum moved."""
        return self.advance(source, END_OF_TIME)

    def marks(self) -> dict[Hashable, int]:
        """A copy of all marks, by input."""
        return dict(self._marks)

    def restore(self, marks: dict[Hashable, int], value: int) -> None:
        """Put back what :meth:`marks` and :attr:`value` told."""
        self._marks = dict(marks)
        self._value = value
