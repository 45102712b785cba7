"""SparkStore next to MemoryStore, over batches that end, fail and are run again."""

from __future__ import annotations

import pickle
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lowwater.engines.spark.worker import cache
from lowwater.engines.spark.worker import store as spark_store
from lowwater.engines.spark.worker.store import SparkStore
from lowwater.state.index import ChunkKey
from lowwater.state.store import MemoryStore
from tests.support.local_spark import MemoryShelf

NAMES = st.sampled_from(["seen", "held"])
SLICES = st.integers(-3, 3)
EDGES = st.one_of(st.none(), st.integers(-4, 4))


def chunk(rows: int) -> pl.DataFrame:
    return pl.DataFrame({"ts": range(rows), "s": [f"row {at}" for at in range(rows)]})


class Batches(RuleBasedStateMachine):
    """Any use of a store, cut into batches in any way: MemoryStore is the model."""

    @initialize(cached=st.booleans())
    def begin(self, cached: bool) -> None:
        self.run = f"test-{uuid.uuid4()}" if cached else None
        self.model = MemoryStore()
        self.shelf = MemoryShelf()
        self.index: bytes | None = None
        self.before: list[tuple[str, Any]] = []
        self.open()

    def open(self) -> None:
        """What happens at the start of a batch: all there is comes from the shelf."""
        self.shelf = MemoryShelf(dict(self.shelf.chunks))
        saved = None if self.index is None else pickle.loads(self.index)
        copies = None if self.run is None else cache.ChunkCache(self.run, 0, 0)
        self.store = SparkStore("slot", self.shelf, saved, copies)

    # ---- the verbs -------------------------------------------------------------------------

    @rule(name=NAMES, slice_=SLICES, rows=st.integers(1, 5))
    def put(self, name: str, slice_: int, rows: int) -> None:
        key = self.store.put(name, slice_, chunk(rows))
        assert key == self.model.put(name, slice_, chunk(rows))
        self.before.append(("put", (name, slice_, rows)))

    @precondition(lambda self: self.model.rows)
    @rule(data=st.data())
    def get(self, data: Any) -> None:
        key = data.draw(st.sampled_from(self.keys()))
        assert self.store.get(key).equals(self.model.get(key))

    @precondition(lambda self: self.model.rows)
    @rule(data=st.data())
    def remove(self, data: Any) -> None:
        key = data.draw(st.sampled_from(self.keys()))
        self.store.remove(key)
        self.model.remove(key)
        self.before.append(("remove", key))

    @rule(name=NAMES, low=EDGES, high=EDGES)
    def look(self, name: str, low: int | None, high: int | None) -> None:
        assert self.store.scan(name, low, high) == self.model.scan(name, low, high)
        assert self.store.slices(name, low, high) == self.model.slices(name, low, high)
        for slice_ in self.model.slices(name):
            assert self.store.rows_in(name, slice_) == self.model.rows_in(name, slice_)

    # ---- batches ---------------------------------------------------------------------------

    @rule()
    def end_batch(self) -> None:
        """Only what survived is written, only what was there is erased, nothing is read twice."""
        known = set(self.shelf.chunks)
        with mock.patch.object(spark_store, "LEAST", 0):
            self.index = pickle.dumps(self.store.save())
        done = {verb: [key for each, key in self.shelf.done if each == verb] for verb in VERBS}
        assert {key for _, key in self.shelf.chunks} == set(self.keys())
        assert {("slot", key) for key in done["erase"]} == known - set(self.shelf.chunks)
        assert {("slot", key) for key in done["write"]} == set(self.shelf.chunks) - known
        for keys in done.values():
            assert len(keys) == len(set(keys))
        self.before.clear()
        self.open()

    @rule(written=st.booleans())
    def fail_batch(self, written: bool) -> None:
        """Spark keeps nothing of a batch that fails; the same batch then comes again."""
        if written:
            with mock.patch.object(self.store, "_shelf", MemoryShelf(dict(self.shelf.chunks))):
                self.store.save()
        self.open()
        for verb, details in self.before:
            if verb == "put":
                self.store.put(details[0], details[1], chunk(details[2]))
            else:
                self.store.remove(details)

    @precondition(lambda self: self.run is not None)
    @rule()
    def move_to_another_machine(self) -> None:
        """The copies on this machine are a help, not the truth."""
        assert self.run is not None
        cache.FOLDERS.forget(self.run)

    def keys(self) -> list[ChunkKey]:
        return [key for key, _ in self.model]

    @invariant()
    def amounts_agree(self) -> None:
        if hasattr(self, "model"):
            assert self.store.rows == self.model.rows
            assert self.store.bytes == self.model.bytes
            assert self.store.chunks == len(self.keys())

    def teardown(self) -> None:
        if getattr(self, "run", None) is not None:
            cache.FOLDERS.forget(self.run)


VERBS = ("read", "write", "erase")
TestBatches = Batches.TestCase


@pytest.mark.parametrize("copied", [False, True], ids=["from the shelf", "from the copy"])
def test_a_chunk_comes_back_with_every_type_it_had(copied: bool) -> None:
    moment = datetime(2024, 2, 29, 12, 30, 0, 123_456)
    row = {
        "int8": pl.Series([-5, None], dtype=pl.Int8),
        "uint64": pl.Series([2**63, None], dtype=pl.UInt64),
        "float32": pl.Series([0.5, None], dtype=pl.Float32),
        "bool": [True, None],
        "text": ["é\0", None],
        "bytes": [b"\xff", None],
        "date": [date(1, 1, 1), None],
        "time": [time(23, 59), None],
        "moment": [moment, None],
        "fine": pl.Series([moment, None], dtype=pl.Datetime("ns")),
        "zoned": pl.Series([moment.replace(tzinfo=UTC), None]).dt.convert_time_zone("Asia/Tokyo"),
        "length": [timedelta(microseconds=1), None],
        "exact": pl.Series([Decimal("1.50"), None], dtype=pl.Decimal(10, 2)),
        "kind": pl.Series(["b", None], dtype=pl.Enum(["a", "b"])),
        "category": pl.Series(["b", None], dtype=pl.Categorical()),
        "list": [[1, None], None],
        "struct": [{"state": b"x", "row": {"v": 1}}, {"state": None, "row": None}],
        "null": pl.Series([None, None], dtype=pl.Null),
    }
    given = pl.DataFrame(row)
    run = f"test-{uuid.uuid4()}"
    shelf = MemoryShelf()
    store = SparkStore("slot", shelf, None, cache.ChunkCache(run, 0, 0))
    key = store.put("held", 0, given)
    with mock.patch.object(spark_store, "LEAST", 0):
        saved = pickle.loads(pickle.dumps(store.save()))
    if not copied:
        cache.FOLDERS.forget(run)
    try:
        again = SparkStore("slot", shelf, saved, cache.ChunkCache(run, 0, 0)).get(key)
        assert again.schema == given.schema
        assert again.rows() == given.rows()
    finally:
        cache.FOLDERS.forget(run)
    assert [verb for verb, _ in shelf.done] == (["write"] if copied else ["write", "read"])
