"""On-demand paging: which units of which pages are empty (UpStream §7.1).

A unit is what is handed out: one location, or a block of them. The Empty Locations Pool (ELP) has
the pages in use with an empty unit. The *next available page* (nap) is filled until it is full or
given back; then it is the first page of the ELP, and only if there is none, a new one. The *next
available location* (nal) is the first empty unit of that page: units are filled from the first on,
so those that were freed come before those that never were in use.

The pseudo-code of the paper does not say when nap becomes empty, nor that a full page leaves the
ELP, and it takes a page before there is something to put in it. Here:

- the ELP has exactly the pages in use with an empty unit, by number; nap is one of them, or none;
- every page in use has a unit taken: a page is taken for the unit that needs it, and given back
  with the last one;
- a page is taken only when all units of all pages in use are taken.

So with ``u`` units taken now, at most ``m`` of them at a time since none was, and ``n`` units a
page, there are no more than ``min(u, ceil(m / n))`` pages in use. Each has a unit taken, so that
there are at most ``u``. And when the last of ``p`` pages in use was taken, the others, at that time
``q`` of them, were full: ``u`` became ``q * n + 1`` or more, and ``p <= q + 1`` as none was taken
since; hence ``p <= q + 1 = ceil((q * n + 1) / n) <= ceil(m / n)``.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowwater.updates.memory.columns import Mask
from lowwater.updates.memory.paged_rows import runs
from lowwater.updates.memory.pages import Slots

Units = NDArray[np.int64]
"""What is handed out: ``page number * units of a page + number of the unit in it``."""


class EmptyLocations:
    """Hands out units of pages, and takes them back."""

    def __init__(self, units: int, alloc: Callable[[], int], free: Callable[[int], None]):
        self._units, self._alloc, self._free = units, alloc, free
        self._taken: dict[int, Mask] = {}
        self._pool: list[int] = []
        self._next_page: int | None = None
        self.used = 0
        """Units taken."""

    def take(self, count: int) -> Units:
        """Empty units, which are not empty any more (MemAdd)."""
        found = [np.empty(0, np.int64)]
        self.used += count
        while count:
            page = self._available()
            taken = self._taken[page]
            units = np.flatnonzero(~taken)[:count]
            taken[units] = True
            if taken.all():
                self._leave_pool(page)
            found.append(page * self._units + units)
            count -= len(units)
        return np.concatenate(found)

    def _available(self) -> int:
        if self._next_page is None and self._pool:
            self._next_page = self._pool[0]
        elif self._next_page is None:
            self._next_page = self._alloc()
            self._taken[self._next_page] = np.zeros(self._units, bool)
            insort(self._pool, self._next_page)
        return self._next_page

    def _leave_pool(self, page: int) -> None:
        del self._pool[bisect_left(self._pool, page)]
        if page == self._next_page:
            self._next_page = None

    def give_back(self, units: Units) -> Units:
        """Make units empty that ascend; pages without any other go (MemRem).

        Those of pages that stay are given back.
        """
        numbers, within = np.divmod(units, self._units)
        stay = [np.empty(0, np.int64)]
        for page, part in runs(numbers):
            taken = self._taken[page]
            if not taken[within[part]].all():
                raise KeyError(f"no row is at some of {units[part].tolist()}")
            if taken.all():
                insort(self._pool, page)
            taken[within[part]] = False
            if taken.any():
                stay.append(units[part])
                continue
            self._leave_pool(page)
            del self._taken[page]
            self._free(page)
        self.used -= len(units)
        return np.concatenate(stay)

    def taken(self, page: int) -> Slots:
        """The units taken of a page in use."""
        return np.flatnonzero(self._taken[page])

    def snapshot(self) -> dict[str, Any]:
        """Which units are taken, a bit each."""
        masks = [mask for _, mask in sorted(self._taken.items())]
        bits = np.packbits(np.concatenate(masks)).tobytes() if masks else b""
        return {"pages": sorted(self._taken), "taken": bits, "next_page": self._next_page}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        pages = saved["pages"]
        bits = np.unpackbits(
            np.frombuffer(saved["taken"], np.uint8), count=len(pages) * self._units
        )
        masks = bits.astype(bool).reshape(len(pages), self._units)
        self._taken = dict(zip(pages, masks, strict=True))
        self._pool = [page for page, mask in self._taken.items() if not mask.all()]
        self._next_page = saved["next_page"]
        self.used = int(masks.sum())
