"""Window buffers: where rows are put, what is read for a window, and when blocks go."""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
import pytest

from lowwater.state.index import ChunkKey
from lowwater.state.store import MemoryStore
from lowwater.stream.element import Chunk
from lowwater.updates.memory.blocks import BlockMemory
from tests.support.preallocated_windows import PreallocatedWindows
from tests.support.window_buffers import Place, append, between, bytes_of, pointers

SCHEMA = pl.Schema({"n": pl.Int64, "s": pl.String})


def rows(times: list[int]) -> tuple[pl.DataFrame, np.ndarray]:
    found = pl.DataFrame({"n": times, "s": [f"at {time}" for time in times]}, schema=SCHEMA)
    return found, np.array(times, np.int64)


@pytest.fixture
def memory() -> BlockMemory:
    return BlockMemory(SCHEMA, page_rows=8, block_rows=4)


def test_a_block_is_filled_before_the_next_is_taken(memory: BlockMemory) -> None:
    buffer = memory.buffer(0)
    append(memory, 0, *rows([1, 2, 3]))
    append(memory, 1, *rows([1]))
    append(memory, 0, *rows([4, 5]))
    assert [(b.page, b.offset, b.dequeue, b.enqueue) for b in buffer.blocks] == [
        (0, 0, 0, 4),
        (1, 0, 0, 1),
    ]
    assert (memory.pages, memory.used, memory.pages * memory.page_rows) == (2, 6, 16)
    assert memory._empty.used * memory.block_rows - memory.used == 6, "locations without a row"


def test_pointers_are_those_of_the_paper(memory: BlockMemory) -> None:
    buffer = memory.buffer(0)
    assert pointers(buffer) == (None, None, None, None)
    append(memory, 0, *rows(list(range(10))))
    first, second, third = buffer.blocks
    assert pointers(buffer).dequeued_from == Place(first, 0)
    assert pointers(buffer).enqueued_to == Place(third, 1)
    assert between(memory, 0, 5, 9)["n"].to_list() == [5, 6, 7, 8]
    window = pointers(buffer, 5, 9)
    assert (window.window_start, window.window_end) == (Place(second, 0), Place(third, 1))
    buffer.drop_before(6)
    assert pointers(buffer).dequeued_from == Place(second, 2)


def test_blocks_out_of_a_window_are_not_read(memory: BlockMemory) -> None:
    class Watched(MemoryStore):
        def get(self, key: ChunkKey) -> Chunk:
            read.append(key.slice)
            return super().get(key)

    read: list[int] = []
    store = Watched()
    append(memory, 7, *rows([*range(8), *range(20, 28), *range(10, 18)]))
    again = BlockMemory(SCHEMA, page_rows=8, block_rows=4)
    again.load(store, "w", memory.save(store, "w"))
    assert between(again, 7, 12, 18)["n"].to_list() == [*range(12, 18)]
    assert read == [2]


def test_pages_go_with_their_last_block(memory: BlockMemory) -> None:
    one, two = memory.buffer(0), memory.buffer(1)
    append(memory, 0, *rows([1, 2, 3, 4]))
    append(memory, 1, *rows([1]))
    one.drop_before(5)
    assert (memory.pages, one.rows, one.blocks) == (1, 0, [])
    two.drop_before(2)
    assert (memory.pages, memory.bytes, memory.used) == (0, 0, 0)


def test_rows_in_any_order_of_time_stay_while_they_are_needed(memory: BlockMemory) -> None:
    buffer = memory.buffer(0)
    append(memory, 0, *rows([1, 9, 2, 3, 4]))
    buffer.drop_before(5)
    assert buffer.rows == 3
    assert between(memory, 0, 5, 10)["n"].to_list() == [9]
    assert [(block.least, block.greatest) for block in buffer.blocks] == [(2, 9)]


def test_a_buffer_takes_its_locations_and_the_objects_in_them(memory: BlockMemory) -> None:
    append(memory, 0, *rows([1, 22, 3, 4, 5]))
    append(memory, 1, *rows([1]))
    texts = sum(sys.getsizeof(f"at {time}".encode()) for time in (1, 22, 3, 4, 5))
    assert bytes_of(memory, 0) == 8 * (8 + 8 + 8) + texts
    assert memory.bytes == 16 * (8 + 8 + 8) + texts + sys.getsizeof(b"at 1")


def test_one_size_for_all_keys_is_taken_at_once_and_for_ever() -> None:
    naive = PreallocatedWindows(SCHEMA, capacity=6, page_rows=4)
    buffer = naive.buffer(1)
    buffer.append(*rows([1, 2, 3]))
    assert (naive.pages, naive.used, naive.dirty) == (3, 3, 3)
    taken, own = naive.bytes, buffer.bytes
    assert own == 6 * (8 + 8 + 8) + 3 * sys.getsizeof(b"at 1")
    buffer.drop_before(9)
    assert (naive.pages, naive.used, naive.dirty) == (3, 0, 6)
    assert (naive.bytes, buffer.bytes) == (taken, own)
    buffer.append(*rows([9]))
    assert buffer.between(0, 10)["n"].to_list() == [9]
    with pytest.raises(ValueError, match="no more than 6"):
        buffer.append(*rows([1] * 6))
