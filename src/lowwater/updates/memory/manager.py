"""What every memory manager of an update queue does, whatever it does about empty locations."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lowwater.state.store import ChunkStore
from lowwater.stream.element import Chunk
from lowwater.updates.memory.paged_rows import Locations

Owners = NDArray[np.int64]
"""The keys that rows belong to, by number: keys are numbered from 0 on as they are met."""


class MemoryManager(Protocol):
    """Rows by location, in pages.

    A location is one number. It is taken from :meth:`add` to :meth:`remove`; reading, overwriting
    or removing one that is not taken is an error of the caller.
    """

    @property
    def used(self) -> int:
        """Locations that hold a row."""

    @property
    def allocated(self) -> int:
        """Locations of the pages in use."""

    @property
    def dirty(self) -> int:
        """Locations handed out that hold no current row."""

    @property
    def bytes(self) -> int:
        """Bytes of the pages in use."""

    @property
    def pages(self) -> int:
        """Pages in use."""

    def add(self, rows: Chunk, owners: Owners) -> Locations:
        """Put rows of keys that have none; where they are now."""

    def overwrite(self, locations: Locations, rows: Chunk) -> None:
        """Put rows in the place of others; the last one where a location is given repeatedly."""

    def read(self, locations: Locations) -> Chunk:
        """The rows in locations, in the order given; a location may be given repeatedly."""

    def remove(self, locations: Locations) -> None:
        """Drop rows."""

    def save(self, store: ChunkStore, name: str) -> dict[str, Any]:
        """Write what changed since the last time; all else that :meth:`load` needs.

        There is one chunk a page, with the number of the page as its slice. It is always the same
        store and name.
        """

    def load(self, store: ChunkStore, name: str, saved: dict[str, Any]) -> None:
        """Go on from what was saved, in a manager that is new; pages are read when touched."""
