"""Memory of update queues: what is read is what was last written, and memory is given back."""

from __future__ import annotations

import copy
import marshal
import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from lowwater.claims.updates_memory import PreallocatedMemory
from lowwater.state.index import ChunkKey
from lowwater.state.store import MemoryStore
from lowwater.stream.element import Chunk
from lowwater.updates.memory.blocks import BlockMemory, Times, WindowBuffer
from lowwater.updates.memory.locations import OnDemandMemory
from tests.support import window_buffers
from tests.support.preallocated_windows import PreallocatedWindows

SCHEMA = pl.Schema({"n": pl.Int64, "s": pl.String, "l": pl.List(pl.Int16)})
KEYS = 40
Manager = OnDemandMemory | PreallocatedMemory
Row = tuple[int | None, str | None, list[int] | None]
SEEDS = st.integers(0, 2**32)
AnyMemory = BlockMemory | PreallocatedWindows


class WatchedStore(MemoryStore):
    """Counts what is written and read."""

    def __init__(self) -> None:
        super().__init__()
        self.written = self.reads = 0

    def put(self, name: str, slice_: int, chunk: Chunk) -> ChunkKey:
        self.written += 1
        return super().put(name, slice_, chunk)

    def remove(self, key: ChunkKey) -> None:
        self.written += 1
        super().remove(key)

    def get(self, key: ChunkKey) -> Chunk:
        self.reads += 1
        return super().get(key)


def row(dice: random.Random) -> Row:
    return (
        dice.choice([None, 0, dice.randrange(10**9)]),
        dice.choice([None, "", "ü" * dice.randrange(30)]),
        dice.choice([None, [], [dice.randrange(100)] * dice.randrange(3)]),
    )


def frame(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def bytes_of(page: list[Row], page_rows: int) -> int:
    """What a page takes: arrays, a mask if there is a null number, and an object a value."""
    mask = any(number is None for number, _, _ in page) * page_rows
    texts = [text.encode() for _, text, _ in page if text]
    lists = [marshal.dumps(some, 2) for _, _, some in page if some is not None]
    return 3 * 8 * page_rows + mask + sum(map(sys.getsizeof, texts + lists))


def figures(memory: Manager | AnyMemory) -> tuple[int, ...]:
    """The rows, bytes and pages of a memory, and locations taken without a row."""
    dirty = 0 if isinstance(memory, OnDemandMemory | BlockMemory) else memory.dirty
    if isinstance(memory, BlockMemory):
        dirty = memory._empty.used
    return memory.used, memory.bytes, memory.pages, dirty


class Queue:
    """A memory and what a dict says is in it, by key."""

    def __init__(self, make: Callable[[], Manager], dice: random.Random):
        self.make, self.dice = make, dice
        self.memory = make()
        self.where: dict[int, int] = {}
        self.held: dict[int, Row] = {}
        self.met: set[int] = set()
        self.most = self.most_pages = 0
        self.store = WatchedStore()

    def some(self, keys: list[int]) -> list[int]:
        return self.dice.sample(keys, self.dice.randint(0, len(keys)))

    def add(self) -> None:
        keys = self.some(sorted(set(range(KEYS)) - set(self.held)))
        rows = [row(self.dice) for _ in keys]
        before = self.memory.pages, self.memory.pages * self.memory.page_rows - self.memory.used
        if isinstance(self.memory, PreallocatedMemory):
            found = self.memory.add(frame(rows), np.array(keys, np.int64)).tolist()
        else:
            found = self.memory.add(frame(rows)).tolist()
        assert not set(found) & set(self.where.values())
        assert len(set(found)) == len(found)
        if isinstance(self.memory, OnDemandMemory) and len(keys) <= before[1]:
            assert self.memory.pages == before[0]
        if isinstance(self.memory, PreallocatedMemory):
            assert found == keys
        self.where |= dict(zip(keys, found, strict=True))
        self.held |= dict(zip(keys, rows, strict=True))
        self.met |= set(keys)

    def overwrite(self) -> None:
        keys = self.some(list(self.held))[:9]
        rows = [row(self.dice) for _ in keys]
        self.memory.write(np.array([self.where[key] for key in keys], np.int64), frame(rows))
        self.held |= dict(zip(keys, rows, strict=True))

    def remove(self) -> None:
        keys = self.some(list(self.held))
        self.memory.remove(np.array([self.where.pop(key) for key in keys], np.int64))
        for key in keys:
            del self.held[key]

    def read(self) -> None:
        keys = self.dice.choices(list(self.held), k=self.dice.randint(0, 9)) if self.held else []
        found = self.memory.read(np.array([self.where[key] for key in keys], np.int64))
        assert found.schema == SCHEMA
        assert found.rows() == [self.held[key] for key in keys]

    def save(self) -> None:
        if isinstance(self.memory, OnDemandMemory):
            self.memory.save(self.store, "rows")

    def reload(self) -> None:
        """Save, twice, and go on in another memory; the naive one is never saved."""
        if not isinstance(self.memory, OnDemandMemory):
            return
        saved = self.memory.save(self.store, "rows")
        written = self.store.written
        assert self.memory.save(self.store, "rows") == saved
        assert self.store.written == written
        assert len(self.store.slices("rows")) == self.memory.pages
        before, self.memory = self.memory, self.make()
        reads = self.store.reads
        assert isinstance(self.memory, OnDemandMemory)
        self.memory.load(self.store, "rows", copy.deepcopy(saved))
        assert self.store.reads == reads
        assert figures(self.memory) == figures(before)
        assert self.memory.save(self.store, "rows") == saved
        assert (self.store.written, self.store.reads) == (written, reads)

    def check(self) -> None:
        memory = self.memory
        self.most = max(self.most if self.held else 0, len(self.held))
        assert memory.used == len(self.held)
        assert memory.bytes == sum(page.bytes for page in memory._pages.values())
        if isinstance(memory, OnDemandMemory):
            assert memory.pages <= min(memory.used, math.ceil(self.most / memory.page_rows))
            pages: dict[int, list[Row]] = defaultdict(list)
            for key, where in self.where.items():
                pages[where // memory.page_rows].append(self.held[key])
            assert memory.pages == len(pages)
            self.most_pages = max(self.most_pages, len(pages))
            assert max(pages, default=-1) < self.most_pages
            size = memory.page_rows
            assert memory.bytes == sum(bytes_of(page, size) for page in pages.values())
        else:
            assert memory.dirty == len(self.met) - len(self.held)


STEPS = ("add", "add", "overwrite", "remove", "read", "save", "reload")


@given(SEEDS, st.sampled_from([OnDemandMemory, PreallocatedMemory]), st.integers(1, 12))
def test_memory_holds_what_a_dict_would(seed: int, kind: type[Manager], page_rows: int) -> None:
    dice = random.Random(seed)
    queue = Queue(lambda: kind(SCHEMA, page_rows), dice)
    for _ in range(dice.randint(1, 30)):
        getattr(queue, dice.choice(STEPS))()
        queue.check()
    queue.memory.read(np.array(list(queue.where.values()), np.int64))
    queue.check()


# ---- windows -------------------------------------------------------------------------------


class Windows:
    """A memory of windows and what a dict says is in it: rows by key in the order they came."""

    def __init__(self, make: Callable[[], AnyMemory], dice: random.Random):
        self.make, self.dice = make, dice
        self.memory = make()
        self.held: dict[int, list[tuple[int, Row]]] = defaultdict(list)
        self.store = WatchedStore()
        self.clock = 0

    def append(self) -> None:
        """Rows for several keys at once; at times a key has many."""
        owners = self.dice.sample(range(OWNERS), self.dice.randint(0, OWNERS))
        counts = [min(self.dice.choice([0, 1, 2, 9]), CAPACITY - len(self.held[o])) for o in owners]
        times = np.array([self.time() for _ in range(sum(counts))], np.int64)
        rows = [row(self.dice) for _ in times]
        if len(owners) == 1 and self.dice.random() < 0.5:
            self.append_to(owners[0], frame(rows), times)
        else:
            self.memory.append(owners, counts, frame(rows), times)
        new = iter(zip(times.tolist(), rows, strict=True))
        for owner, count in zip(owners, counts, strict=True):
            self.held[owner] += [next(new) for _ in range(count)]

    def append_to(self, owner: int, rows: pl.DataFrame, times: Times) -> None:
        if isinstance(self.memory, BlockMemory):
            window_buffers.append(self.memory, owner, rows, times)
        else:
            self.memory.buffer(owner).append(rows, times)

    def found(self, owner: int, start: int, end: int) -> pl.DataFrame:
        if isinstance(self.memory, BlockMemory):
            return window_buffers.between(self.memory, owner, start, end)
        return self.memory.buffer(owner).between(start, end)

    def time(self) -> int:
        self.clock += self.dice.randrange(3)
        return self.clock - self.dice.choice([0, 0, self.dice.randrange(30)])

    def near(self, owner: int) -> int:
        """A time at which there is a row of a key, or close by."""
        times = [time for time, _ in self.held[owner]] or [self.clock]
        return self.dice.choice(times) + self.dice.choice([-3, -1, 0, 0, 0, 1, 3])

    def between(self) -> None:
        for owner in range(OWNERS):
            start, end = self.near(owner), self.near(owner)
            found = self.found(owner, start, end)
            assert found.schema == SCHEMA
            expected = [row for time, row in self.held[owner] if start <= time < end]
            assert found.rows() == expected

    def drop(self) -> None:
        """All that is needed stays; else a row stays only behind one of its block that is."""
        owner = self.dice.randrange(OWNERS)
        before = self.near(owner)
        buffer = self.memory.buffer(owner)
        buffer.drop_before(before)
        needed = [each for each in self.held[owner] if each[0] >= before]
        if isinstance(buffer, WindowBuffer):
            read = buffer._memory.read_blocks
            kept = read(buffer.blocks).rows()
            assert [each for each in kept if each[0] >= before] == [(t, *r) for t, r in needed]
            assert all(
                buffer._memory.read_blocks([each]).item(0, 0) >= before for each in buffer.blocks
            )
            self.held[owner] = [(time, tuple(rest)) for time, *rest in kept]  # type: ignore[misc]
        else:
            self.held[owner] = needed

    def reload(self) -> None:
        """Save, twice, and go on in another memory."""
        saved = self.memory.save(self.store, "rows")
        written = self.store.written
        assert self.memory.save(self.store, "rows") == saved
        before, self.memory = self.memory, self.make()
        reads = self.store.reads
        self.memory.load(self.store, "rows", copy.deepcopy(saved))
        assert figures(self.memory) == figures(before)
        assert self.memory.save(self.store, "rows") == saved
        assert (self.store.written, self.store.reads) == (written, reads)

    def check(self) -> None:
        memory = self.memory
        assert memory.used == sum(map(len, self.held.values()))
        for owner, rows in self.held.items():
            assert memory.buffer(owner).rows == len(rows)
        if isinstance(memory, BlockMemory) and self.dice.random() < 0.5:  # which reads all pages
            self.check_blocks(memory)

    def check_blocks(self, memory: BlockMemory) -> None:
        blocks = [each for buffer in self.buffers() for each in buffer.blocks]
        pages: dict[int, list[Row]] = defaultdict(list)
        for block in blocks:
            times, *rest = memory.read_blocks([block])
            assert (block.least, block.greatest) == (times.min(), times.max())
            pages[block.page] += pl.DataFrame(rest).rows()  # type: ignore[arg-type]
        assert len({(each.page, each.offset) for each in blocks}) == len(blocks)
        assert memory.pages == len(pages)
        assert memory._empty.used == len(blocks)
        size = memory.page_rows
        expected = sum(bytes_of(page, size) + 8 * size for page in pages.values())
        assert memory.bytes == expected
        for buffer in self.buffers():
            assert all(block.rows for block in buffer.blocks)
            assert all(block.enqueue == memory.block_rows for block in buffer.blocks[:-1])

    def buffers(self) -> list[WindowBuffer]:
        found = [self.memory.buffer(owner) for owner in range(OWNERS)]
        return [each for each in found if isinstance(each, WindowBuffer)]


OWNERS = 4
CAPACITY = 12
WINDOW_STEPS = ("append", "append", "between", "between", "drop", "reload")


@given(SEEDS, st.booleans(), st.integers(1, 6), st.integers(1, 4))
def test_windows_hold_what_a_dict_would(seed: int, naive: bool, block: int, blocks: int) -> None:
    dice = random.Random(seed)

    def make() -> AnyMemory:
        if naive:
            return PreallocatedWindows(SCHEMA, CAPACITY, block * blocks)
        return BlockMemory(SCHEMA, block * blocks, block)

    windows = Windows(make, dice)
    for _ in range(dice.randint(1, 30)):
        getattr(windows, dice.choice(WINDOW_STEPS))()
        windows.check()
