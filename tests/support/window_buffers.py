"""Views of window buffers for tests: rows between times, bytes, pointers of the paper (§7.2)."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from lowwater.stream.element import Chunk
from lowwater.updates.memory.blocks import TIME, Block, BlockMemory, Times, WindowBuffer
from lowwater.updates.memory.columns import payload
from lowwater.updates.memory.pages import Locations, PagedRows


class Place(NamedTuple):
    """A location in a block."""

    block: Block
    offset: int


def objects(rows: PagedRows, locations: Locations) -> int:
    """Bytes of the objects in locations that ascend."""
    cells = (cell for n, _, at in rows._parts(locations) for cell in rows._pages[n].get(at))
    return sum(payload(cell.values) for cell in cells if cell.values.dtype == object)


def append(memory: BlockMemory, owner: int, rows: Chunk, times: Times) -> None:
    """Add rows to one buffer, in any order of time."""
    memory.write_at(memory.buffer(owner).place(times), rows, times)


def between(memory: BlockMemory, owner: int, start: int, end: int) -> Chunk:
    """The rows of a buffer with ``start <= time < end``, in the order they came."""
    rows = memory.read_blocks(_reached(memory.buffer(owner), start, end))
    return rows.filter(pl.col(TIME).is_between(start, end, closed="left")).drop(TIME)


def _reached(buffer: WindowBuffer, start: int, end: int) -> list[Block]:
    return [block for block in buffer.blocks if block.reaches(start, end)]


def bytes_of(memory: BlockMemory, owner: int) -> int:
    """Bytes of the locations of a buffer and of the objects in them."""
    total = 0
    for block in memory.buffer(owner).blocks:
        held = memory.locations(block, block.dequeue, block.enqueue)
        total += memory.block_rows * memory.layout.row_bytes + objects(memory, held)
    return total


class Pointers(NamedTuple):
    """Where the first row of a buffer is and the last, of all rows and of those of a window."""

    dequeued_from: Place | None
    enqueued_to: Place | None
    window_start: Place | None
    window_end: Place | None


def pointers(buffer: WindowBuffer, start: int = 0, end: int = 0) -> Pointers:
    """DF, ET, and WS and WE of a window."""
    return Pointers(*_ends(buffer.blocks), *_ends(_reached(buffer, start, end)))


def _ends(blocks: list[Block]) -> tuple[Place | None, Place | None]:
    if not blocks:
        return None, None
    return Place(blocks[0], blocks[0].dequeue), Place(blocks[-1], blocks[-1].enqueue - 1)
