"""First rows of independent streams confirm each other (ETS §4.1: simultaneous tuples).

The first row of a channel may be dated far ahead by mistake, so it moves no mark by itself
(:mod:`~lowwater.progress.channel`). Rows of two inputs that come first and have one time would then
wait for the next row of each. But two streams hardly make the same mistake: a first row that is at
most ``jump`` from the newest time of a channel of another stream moves the mark of its channel at
once.

Invariant: a first row that is further than ``jump`` from the newest times of all other streams
moves no mark. Streams that read the same rows do not confirm each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import combinations

import numpy as np

from lowwater.progress.punctuator import Punctuator
from lowwater.progress.tracker import Tracker


class FirstRows:
    """Confirms the first rows of some streams by rows of the others.

    ``streams`` are the progress of each stream by its index; ``origins`` identify where their rows
    come from. Streams whose groups progress apart, and streams without ``jump``, take no part.
    """

    def __init__(self, streams: Mapping[int, Punctuator], origins: Mapping[int, Hashable]):
        self._trackers: dict[int, tuple[Tracker, int]] = {}
        self._others: dict[int, list[int]] = {}
        for index, each in streams.items():
            tracker, jump = each.trackers.get(each.spec.time), each.jump(each.spec.time)
            if isinstance(tracker, Tracker) and jump is not None and not each.spec.groups:
                self._trackers[index] = tracker, jump
                self._others[index] = []
        for one, two in combinations(self._trackers, 2):
            same = _domain(streams[one]) == _domain(streams[two])
            if same and origins[one] != origins[two]:
                self._others[one].append(two)
                self._others[two].append(one)

    def confirm(self, index: int) -> set[int]:
        """Confirm first rows by the last rows of a stream, and its own first rows by others; return
        the streams whose marks may have moved.

        Cost: that of the first rows in doubt and of the channels that got rows; if the stream has a
        new first row, also of the channels of the others.
        """
        moved: set[int] = set()
        if index not in self._trackers:
            return moved
        tracker, jump = self._trackers[index]
        for other in self._others[index]:
            against, width = self._trackers[other]
            if tracker.new_doubts and _confirm(
                tracker, tracker.new_doubts, against.newest_times(), jump
            ):
                moved.add(index)
            if against.doubts and _confirm(
                against, against.doubts, tracker.newest_times(moved=True), width
            ):
                moved.add(other)
        return moved

    def confirm_all(self, indices: Iterable[int]) -> set[int]:
        """Do so for each of several streams that got rows together."""
        return {moved for index in indices for moved in self.confirm(index)}


def _confirm(
    tracker: Tracker, doubts: Mapping[Hashable, int], witnesses: np.ndarray, jump: int
) -> bool:
    """Confirm the first rows that are at most ``jump`` ticks from a witness; return whether any
    was."""
    known = np.sort(witnesses)
    found = []
    for name, time in doubts.items():
        at = int(np.searchsorted(known, time - jump))
        if at < len(known) and known[at] - time <= jump:
            found.append(name)
    tracker.confirm_first(found)
    return bool(found)


def _domain(stream: Punctuator) -> object:
    return stream.spec.domains[stream.spec.time]
