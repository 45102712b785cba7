"""The places of distinct keys, found by hash.

A place is the number of a row in some list of rows that only grows at its end. The index keeps no
keys: :meth:`KeyIndex.find` returns the only place that a key can have, and the caller compares the
key there. So it takes 12 to 20 bytes a key, whatever the keys are.

Invariant: two keys of which the index has both hashes are found at different places, or at the same
place if 32 bits of their hashes agree; the caller then sees that the key there is another one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Places = NDArray[np.int32]
UNKNOWN = -1
"""The place of a key that is not in the index."""
LOAD = 0.6
"""Greatest share of slots that are taken."""
_HALF = np.uint64(32)


class KeyIndex:
    """A hash table from hashes to places, with linear probing; lookups are done many at a time.

    ``hashes`` are those of the keys at place 0 and after, ``room`` the number of keys that can be
    added.
    """

    def __init__(self, hashes: Hashes, room: int):
        slots = 1 << int((1.25 * len(hashes) + room) / LOAD).bit_length()
        self._last = slots - 1
        self._slots: Places = np.full(slots, UNKNOWN, np.int32)
        self._marks = np.empty(int(slots * LOAD) + 1, np.uint32)  # half a hash, by place
        self._keys = 0
        self.add(hashes)

    @property
    def bytes(self) -> int:
        """The size of the index."""
        return self._slots.nbytes + self._marks.nbytes

    def has_room(self, keys: int) -> bool:
        """Return true if so many keys can be added; else a new index has to be made."""
        return self._keys + keys < len(self._marks)

    def add(self, hashes: Hashes) -> None:
        """Add keys that are not in the index, at the places that come next."""
        first, self._keys = self._keys, self._keys + len(hashes)
        self._marks[first : self._keys] = hashes >> _HALF
        places = np.arange(first, self._keys, dtype=np.int32)
        slots = self._first_slots(hashes)
        while len(places):
            free = self._slots[slots] == UNKNOWN
            self._slots[slots[free]] = places[free]  # of several for one slot, one gets it
            left = self._slots[slots] != places
            places, slots = places[left], (slots[left] + 1) & self._last

    def find(self, hashes: Hashes) -> Places:
        """Return the places that keys have if they are in the index; else UNKNOWN or any place."""
        slots, marks = self._first_slots(hashes), (hashes >> _HALF).astype(np.uint32)
        places = self._slots[slots]
        others = self._others(places, marks)
        while len(others):
            slots[others] = (slots[others] + 1) & self._last
            places[others] = self._slots[slots[others]]
            others = others[self._others(places[others], marks[others])]
        return places

    def _first_slots(self, hashes: Hashes) -> NDArray[np.int64]:
        return (hashes & np.uint64(self._last)).astype(np.int64)

    def _others(self, places: Places, marks: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the positions of the places whose key has another hash."""
        return np.flatnonzero((places != UNKNOWN) & (self._marks[places] != marks))
