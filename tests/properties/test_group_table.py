"""Numbers by group: what is written, settled, built again and looked up is what a dict holds."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.operators.distinct import SEEN, Distinct
from lowwater.state.group_table import UNKNOWN, GroupTable
from lowwater.state.index import ChunkKey
from lowwater.state.store import MemoryStore
from lowwater.stream.element import MARK, Chunk, GroupPunctuation
from lowwater.stream.time_domain import TimeDomain

COLUMNS = {"a": -1, "b": 7}
ONE = st.integers(0, 30)
TWO = st.tuples(st.integers(0, 5), st.sampled_from("xyz"))
STEPS = st.sampled_from(["put", "put", "find", "settle", "again", "load", "remove"])


def frame(keys: list[Any], two: bool) -> pl.DataFrame:
    if two:
        return pl.DataFrame(keys, schema={"i": pl.Int64, "s": pl.String}, orient="row")
    return pl.DataFrame({"i": keys}, schema={"i": pl.Int64})


@given(st.booleans(), st.booleans(), st.data())
def test_a_table_holds_what_a_dict_would(two: bool, stored: bool, data: Any) -> None:
    store = MemoryStore() if stored else None
    table = GroupTable(COLUMNS, store)
    held: dict[Any, dict[str, int]] = {}
    some = st.lists(TWO if two else ONE, unique=True, max_size=12)
    for _ in range(data.draw(st.integers(1, 25))):
        step = data.draw(STEPS)
        keys = data.draw(some)
        if step == "put":
            name, value = data.draw(st.sampled_from("ab")), data.draw(st.integers(-99, 99))
            table.put(name, table.admit(frame(keys, two)), np.full(len(keys), value))
            for key in keys:
                held.setdefault(key, dict(COLUMNS))[name] = value
        elif step == "settle":
            table.settle()
        elif step == "remove":
            marked = table.admit(frame(list(held), two)) if held else np.empty(0, np.int64)
            origins = dict(zip(marked.tolist(), list(held), strict=True))
            moved = table.remove(frame(keys, two))
            for key in keys:
                held.pop(key, None)
            for place, key in origins.items():
                now = moved.get(place, place)
                assert (now == UNKNOWN) == (key not in held)
                assert now == UNKNOWN or table.place(key) == now
        elif step == "load":
            table.load()
            assert len(table) == len(held)
        elif step == "again":
            saved = copy.deepcopy(table.snapshot())
            table = GroupTable(COLUMNS, store)
            table.restore(saved)
        places = table.find(frame(keys, two))
        assert [place == UNKNOWN for place in places] == [key not in held for key in keys]
        for name, default in COLUMNS.items():
            expected = [held.get(key, {}).get(name, default) for key in keys]
            assert table.get(name, places).tolist() == expected
        found = places[places != UNKNOWN]
        if len(found):
            assert table.keys(found).equals(frame([key for key in keys if key in held], two))
        assert table.has_groups or not held
        least = min((each["a"] for each in held.values()), default=None)
        assert table.least("a") == least
    if stored:
        whole = table.whole("b")
        rows = [] if whole is None else whole.rows()
        got = {key[0] if len(key) == 1 else tuple(key): number for *key, number in rows}
        assert got == {key: each["b"] for key, each in held.items()}
        table.clear()
        assert store is not None
        assert store.rows == 0


def test_what_is_written_over_and_over_stays_small() -> None:
    store = MemoryStore()
    table = GroupTable(COLUMNS, store)
    table.admit(frame(list(range(5_000)), two=False))
    table.settle()
    for step in range(500):
        table = GroupTable(COLUMNS, store)
        table.restore({"keys": {"i": pl.Int64()}, "rows": None})
        moved = frame([(7 * step + each) % 5_000 for each in range(10)], two=False)
        table.put("a", table.find(moved), step)
        assert len(table) == 10  # nobody else was looked at
        table.settle()
    assert len(store.scan("groups")) <= 12
    assert store.rows < 3 * 5_000


@pytest.mark.parametrize("settled", [1, 7])
def test_groups_that_came_and_were_removed_leave_nothing(settled: int) -> None:
    store = MemoryStore()
    table = GroupTable(COLUMNS, store)
    most = 0
    for step in range(300):
        table.admit(frame(list(range(10 * step, 10 * step + 10)), two=False))
        if step >= 3:
            gone = frame(list(range(10 * step - 30, 10 * step - 20)), two=False)
            table.remove(gone)
        if step % settled == 0:
            table.settle()
            saved = copy.deepcopy(table.snapshot())
            table = GroupTable(COLUMNS, store)
            table.restore(saved)
            most = max(most, store.rows)
    table.load()
    assert len(table) == 30
    assert most <= 3 * (30 + 10 * settled)
    table.remove(frame(list(range(3_000)), two=False))
    table.settle()
    assert store.rows == 0


class Counting(MemoryStore):
    """A store that remembers which slices were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[int] = []

    def get(self, key: ChunkKey) -> Chunk:
        self.read.append(key.slice)
        return super().get(key)


@pytest.mark.parametrize("told", [True, False], ids=["told what was before", "not told"])
def test_only_the_slices_between_the_marks_are_looked_at(told: bool) -> None:
    domain = TimeDomain(pl.Int64(), 1)
    store = Counting()
    kernel = Distinct(store, ["ts", "g"], "ts", domain, 10)
    times = [*range(0, 100, 10), *range(500, 600, 10)]
    names = ["lagging"] * 10 + ["prompt"] * 10
    kernel.on_chunk(0, pl.DataFrame({"ts": times, "g": names}))
    store.read.clear()
    marks = pl.DataFrame({"g": ["prompt"], MARK: [560]})
    before = {"before": 500} if told else {}
    kernel.on_group_punctuation(0, GroupPunctuation("ts", marks, **before))
    assert (min(store.read) >= 50) == told
    left = sorted(store.slices(SEEN))
    assert left == [*range(10), 56, 57, 58, 59]
