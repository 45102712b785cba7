"""Window buffers in blocks of pages, taken on demand (UpStream §7.2).

Pages are divided into blocks of the same size (fixed-length contiguous zones, FLCZ, in the paper).
A block belongs to one key and is filled from its first location on, so that rows that arrived in
succession are next to each other. A window buffer is the list of the blocks of its key, in the
order in which they were taken. Blocks are taken and given back like single locations
(``locations.py``).

Rows may arrive in any order of time; each block has the least and the greatest time in it, by which
blocks without rows of a window are skipped.

Invariants: every block of a buffer holds a row; all but the last are filled to their end; the rows
of a block are those from its dequeue offset to before its enqueue offset; a buffer holds every row
that was not dropped, and besides only dropped rows that follow, in the same block, one that was
not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.state.store import ChunkStore
from lowwater.stream.element import Chunk
from lowwater.updates.memory.locations import EmptyLocations
from lowwater.updates.memory.pages import PAGE_ROWS, Locations, PagedRows, Slots

Times = NDArray[np.int64]
"""The times of rows, in ticks."""

TIME = "__time"
"""The column of a page that has the times of rows."""


BLOCK_ROWS = 16
"""Number of locations of a block."""


@dataclass(slots=True)
class Block:
    """A block: its place, and the offsets and times of its rows (FLCZ)."""

    page: int
    offset: int
    """Number of the block within the page."""
    dequeue: int
    """The first location that holds a row."""
    enqueue: int
    """The location after the last one that does."""
    least: int
    """The least time of its rows."""
    greatest: int
    """The greatest time of its rows."""

    @property
    def rows(self) -> int:
        """Number of rows in it."""
        return self.enqueue - self.dequeue

    def reaches(self, start: int, end: int) -> bool:
        """Return true if it may have a row with ``start <= time < end``."""
        return self.least < end and start <= self.greatest


class WindowBuffer:
    """The rows of one key, in blocks."""

    def __init__(self, memory: BlockMemory):
        self._memory = memory
        self.blocks: list[Block] = []

    @property
    def rows(self) -> int:
        """Number of rows held."""
        return sum(block.rows for block in self.blocks)

    def place(self, times: Times) -> Locations:
        """Make room for rows with some times; return the locations for them."""
        if not len(times):
            return np.empty(0, np.int64)
        found = []
        size = self._memory.block_rows
        start = 0
        if self.blocks and self.blocks[-1].enqueue < size:
            start = min(len(times), size - self.blocks[-1].enqueue)
            found.append(self._fill(self.blocks[-1], times[:start]))
        parts = [times[at : at + size] for at in range(start, len(times), size)]
        for block, part in zip(self._memory.take(len(parts)), parts, strict=True):
            self.blocks.append(block)
            found.append(self._fill(block, part))
        return np.concatenate(found)

    def _fill(self, block: Block, times: Times) -> Locations:
        low, high = int(times.min()), int(times.max())
        empty = block.enqueue == block.dequeue
        block.least = low if empty else min(block.least, low)
        block.greatest = high if empty else max(block.greatest, high)
        first, block.enqueue = block.enqueue, block.enqueue + len(times)
        return self._memory.locations(block, first, block.enqueue)

    def drop_before(self, time: int) -> None:
        """Give back blocks with only rows below a time, and drop such rows at the start of others.

        A row below the time stays if it follows, in its block, one that is not below.
        """
        self._memory.give_back([block for block in self.blocks if block.greatest < time])
        self.blocks = [block for block in self.blocks if block.greatest >= time]
        for block in self.blocks:
            if block.least < time:
                self._memory.drop_leading(block, time)

    def snapshot(self) -> list[tuple[Any, ...]]:
        """Return its blocks."""
        return [astuple(block) for block in self.blocks]

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        self.blocks = [Block(*block) for block in saved]


class WindowPart(NamedTuple):
    """The rows of a window that are in a buffer; the buffer needs no row below ``drop`` again."""

    buffer: WindowBuffer
    start: int
    drop: int


class BlockMemory(PagedRows):
    """The window buffers of all keys, in blocks of pages taken on demand."""

    def __init__(self, schema: pl.Schema, page_rows: int = PAGE_ROWS, block_rows: int = BLOCK_ROWS):
        self.block_rows = block_rows
        self._blocks = max(1, page_rows // block_rows)
        timed = pl.Schema([(TIME, pl.Int64()), *schema.items()])
        super().__init__(timed, self._blocks * block_rows)
        self._empty = EmptyLocations(self._blocks, self.alloc, self.free)
        self._buffers: dict[int, WindowBuffer] = {}
        self.used = 0
        """Number of locations that hold a row."""

    def buffer(self, owner: int) -> WindowBuffer:
        """Return the window buffer of a key, by its number; make one if there is none."""
        found = self._buffers.get(owner)
        if found is None:
            found = self._buffers[owner] = WindowBuffer(self)
        return found

    def forget(self, owners: Sequence[int]) -> None:
        """Drop buffers with all rows in them."""
        for owner in owners:
            buffer = self._buffers.pop(owner, None)
            if buffer is not None:
                self.give_back(buffer.blocks)

    def append(
        self, owners: Sequence[int], counts: Sequence[int], rows: Chunk, times: Times
    ) -> None:
        """Add rows to many buffers: the next ``counts[i]`` rows to that of ``owners[i]``."""
        if not rows.height:
            return
        parts = np.split(times, np.cumsum(counts)[:-1])
        places = [self.buffer(owner).place(part) for owner, part in zip(owners, parts, strict=True)]
        self.write_at(np.concatenate(places), rows, times)

    # ---- blocks of the buffers -------------------------------------------------------------

    def take(self, count: int) -> list[Block]:
        """Return empty blocks, taken for a buffer."""
        units = self._empty.take(count).tolist()
        return [Block(unit // self._blocks, unit % self._blocks, 0, 0, 0, 0) for unit in units]

    def give_back(self, blocks: Sequence[Block]) -> None:
        """Give blocks back with the rows in them."""
        if not blocks:
            return
        units = np.array([block.page * self._blocks + block.offset for block in blocks])
        self.used -= sum(block.rows for block in blocks)
        stay = self._empty.give_back(np.sort(units))
        within = np.arange(self.block_rows)
        self.clear((stay[:, None] * self.block_rows + within).ravel())

    def locations(self, block: Block, first: int, end: int) -> Locations:
        """Return the locations of a block from offset ``first`` to before ``end``."""
        start = (block.page * self._blocks + block.offset) * self.block_rows
        return np.arange(start + first, start + end)

    def write_at(self, places: Locations, rows: Chunk, times: Times) -> None:
        """Write rows to the places that buffers made for them."""
        self.write(places, rows.with_columns(pl.Series(TIME, times)))
        self.used += rows.height

    def read_blocks(self, blocks: Sequence[Block]) -> Chunk:
        """Return the rows of blocks, with their times."""
        places = [self.locations(block, block.dequeue, block.enqueue) for block in blocks]
        return self.read(np.concatenate([np.empty(0, np.int64), *places]))

    def read_windows(self, parts: Sequence[WindowPart], length: int) -> tuple[Chunk, Times]:
        """Return the rows of windows of ``length`` ticks, and the start of the window of each; drop
        those that are not needed again."""
        near = [
            (part.start, block)
            for part in parts
            for block in part.buffer.blocks
            if block.reaches(part.start, part.start + length)
        ]
        rows = self.read_blocks([block for _, block in near])
        times = rows[TIME].to_numpy()
        rows = rows.drop(TIME)
        counts = np.array([block.rows for _, block in near], np.int64)
        starts = np.repeat(np.array([start for start, _ in near], np.int64), counts)
        inside = (times >= starts) & (times < starts + length)
        if not inside.all():
            rows, starts = rows.filter(pl.Series(inside)), starts[inside]
        for part in parts:
            part.buffer.drop_before(part.drop)
        return rows, starts

    def drop_leading(self, block: Block, time: int) -> None:
        """Drop the rows below a time at the start of a block, one of which is not below."""
        held = self.locations(block, block.dequeue, block.enqueue)
        times = self.numbers(0, held)
        leading = int(np.argmax(times >= time))
        if leading:
            self.clear(held[:leading])
            block.dequeue += leading
            block.least = int(times[leading:].min())
            self.used -= leading

    # ---- saving ----------------------------------------------------------------------------

    def save(self, store: ChunkStore, name: str) -> dict[str, Any]:
        """Write the pages that changed since the last call; return all else that :meth:`load`
        needs."""
        held: dict[int, list[Locations]] = {}
        buffers = {owner: each for owner, each in self._buffers.items() if each.blocks}
        for buffer in buffers.values():
            for block in buffer.blocks:
                places = self.locations(block, block.dequeue, block.enqueue)
                held.setdefault(block.page, []).append(places)

        def slots(page: int) -> Slots:
            return np.sort(np.concatenate(held[page])) - page * self.page_rows

        return {
            "pages": self.save_pages(store, name, slots),
            "empty": self._empty.snapshot(),
            "buffers": {owner: buffer.snapshot() for owner, buffer in buffers.items()},
        }

    def load(self, store: ChunkStore, name: str, saved: dict[str, Any]) -> None:
        """Set a new memory to a snapshot; pages are read when touched."""
        self.load_pages(store, name, saved["pages"])
        self._empty.restore(saved["empty"])
        for owner, buffer in saved["buffers"].items():
            self.buffer(owner).restore(buffer)
        self.used = sum(buffer.rows for buffer in self._buffers.values())
