"""Joint promises of a producer: every later row satisfies at least one of several bounds (OOP §7).

A joint promise is of one channel, or of the whole stream. The stream's promise on some attributes
has for each the least bound of its channels, as in a union. A channel that is not known joins with
the promise that the stream has then.

Invariant: no bound of a channel goes back; a promise that would set one back is ignored. A row is
late if it is below all bounds that its channel had before it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import ge
from typing import Any

import numpy as np

from lowwater.progress.channel import Ticks
from lowwater.progress.judgement import ChannelRows, Mask
from lowwater.stream.element import BEGINNING

JOINT = "__joint"
"""The key of joint promises among the marks of a stream, and their attribute in a digest."""
Attributes = tuple[str, ...]
Bounds = tuple[int, ...]
"""The bounds of a promise in ticks, in the order of its attributes."""


@dataclass(frozen=True, slots=True, eq=False)
class JointRows:
    """The rows of a chunk that promise the same attributes jointly."""

    attributes: Attributes
    rows: Mask
    bounds: Mapping[str, Ticks]
    """By attribute, for all rows of the chunk."""

    def at(self, row: int) -> Bounds:
        """Return the bounds in a row."""
        return tuple(int(self.bounds[name][row]) for name in self.attributes)


@dataclass(frozen=True, slots=True)
class JointBounds:
    """The joint promises before a row or a batch, on some attributes."""

    known: Mapping[Hashable, Bounds]
    """By channel."""
    others: Bounds | None
    """Those of a channel that is not known; None if there are none."""


@dataclass(frozen=True)
class JointBefore:
    """The joint promises before a batch, as a value that can be sent to readers."""

    sets: Mapping[Attributes, JointBounds]

    def merged(self, parts: Iterable[JointBefore]) -> JointBefore:
        """Return these promises: every bucket has those of all channels."""
        del parts
        return self

    def late(
        self, times: Mapping[str, Ticks], rows: ChannelRows
    ) -> Iterator[tuple[str, Mask, Ticks]]:
        """Yield the rows that break the promises on some attributes: the first attribute, the
        rows, and the bound on it before each."""
        for attributes, held in self.sets.items():
            before = np.full((len(attributes), len(times[attributes[0]])), BEGINNING)
            for name, at in rows:
                bounds = held.known.get(name, held.others)
                if bounds is not None:
                    before[:, at] = np.array(bounds)[:, None]
            yield attributes[0], _below(times, attributes, before), before[0]


def _below(times: Mapping[str, Ticks], attributes: Attributes, before: Any) -> Mask:
    below = [times[name] < bound for name, bound in zip(attributes, before, strict=True)]
    late: Mask = np.logical_and.reduce(below)
    return late


class _Set:
    """The promises on some attributes."""

    def __init__(self) -> None:
        self.channels: dict[Hashable, Bounds] = {}
        self.whole: Bounds | None = None  # what holds for every channel, also of those to come

    def take(self, name: Hashable, bounds: Bounds, before: Bounds | None) -> bool:
        """Take a promise of one channel; return false if it is ignored."""
        if before is not None and not all(map(ge, bounds, before)):
            return False
        self.channels[name] = bounds
        return True


class JointMarks:
    """The joint promises of all channels of a stream, by the attributes they are on."""

    def __init__(self) -> None:
        self._sets: dict[Attributes, _Set] = {}

    def __bool__(self) -> bool:
        return bool(self._sets)

    def observe(
        self, times: Mapping[str, Ticks], promised: Sequence[JointRows], rows: ChannelRows
    ) -> Iterator[tuple[Attributes, Mask, Ticks, int]]:
        """Judge rows in arrival order and take the promises in them.

        Yield, for each set of attributes: them, the late rows, the bound on the first attribute
        before each row, and the number of promises that were ignored.
        """
        sent = {each.attributes: each for each in promised}
        for attributes in dict.fromkeys([*self._sets, *sent]):
            held = self._sets.setdefault(attributes, _Set())
            made = sent.get(attributes)
            before = np.full((len(attributes), len(times[attributes[0]])), BEGINNING)
            ignored = 0
            for name, at in rows:
                start = 0
                for end in np.flatnonzero(made.rows[at]).tolist() if made is not None else ():
                    bounds = held.channels.get(name, held.whole)
                    if bounds is not None:
                        before[:, at[start : end + 1]] = np.array(bounds)[:, None]
                    assert made is not None
                    ignored += not held.take(name, made.at(int(at[end])), bounds)
                    start = end + 1
                bounds = held.channels.get(name, held.whole)
                if bounds is not None:
                    before[:, at[start:]] = np.array(bounds)[:, None]
            yield attributes, _below(times, attributes, before), before[0], ignored

    def take(self, attributes: Attributes, bounds: Bounds, names: Iterable[Hashable]) -> int:
        """Take a promise of some channels; return the number of them for which it is ignored."""
        held = self._sets.setdefault(attributes, _Set())
        return sum(
            not held.take(name, bounds, held.channels.get(name, held.whole)) for name in names
        )

    def promise_all(self, attributes: Attributes, bounds: Bounds, names: Iterable[Hashable]) -> int:
        """Take a promise of the whole stream, whose known channels are ``names``; return the number
        of channels for which it is ignored."""
        held = self._sets.setdefault(attributes, _Set())
        if held.whole is not None and not all(map(ge, bounds, held.whole)):
            return 1
        ignored = self.take(attributes, bounds, [name for name in names if name in held.channels])
        held.whole = held.whole if ignored else bounds
        return ignored

    def promised(self, names: Sequence[Hashable]) -> dict[Attributes, Bounds]:
        """Return the promises of the stream, whose channels are ``names``, by attributes.

        They hold for every channel to come from then on.
        """
        found = {}
        for attributes, each in self._sets.items():
            bounds = [each.channels.get(name, each.whole) for name in names]
            if bounds and all(one is not None for one in bounds):
                least = np.array(bounds).min(axis=0)
                each.whole = tuple(int(bound) for bound in least)
            if each.whole is not None:
                found[attributes] = each.whole
        return found

    def end(self, names: Iterable[Hashable]) -> None:
        """Forget channels that have ended."""
        for name in names:
            for each in self._sets.values():
                each.channels.pop(name, None)

    @property
    def before(self) -> JointBefore:
        """The promises that hold now, as a value."""
        return JointBefore(
            {
                attributes: JointBounds(dict(each.channels), each.whole)
                for attributes, each in self._sets.items()
            }
        )

    def snapshot(self) -> JointBefore:
        """Return the state that :meth:`restore` needs."""
        return self.before

    def restore(self, saved: JointBefore) -> None:
        """Set the state to that of a snapshot."""
        self._sets = {}
        for attributes, held in saved.sets.items():
            each = self._sets[attributes] = _Set()
            each.channels, each.whole = dict(held.known), held.others
