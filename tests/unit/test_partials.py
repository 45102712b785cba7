"""What partial aggregates leave in the store."""

from __future__ import annotations

import polars as pl
import pytest

from lowwater.operators import partials as module
from lowwater.operators.aggregates import Call, build
from lowwater.operators.partials import Partials
from lowwater.state.store import MemoryStore

ONE_SLICE = pl.lit(0, pl.Int64)


def rows(*keys: int) -> pl.DataFrame:
    return pl.DataFrame({"pane": [0] * len(keys), "key": keys})


def held(count: int, store: MemoryStore) -> Partials:
    """Partials of some groups, from that many senders, as they came."""
    aggregates = [build(Call("n", "count", None))]
    held = Partials(store, pl.col("pane"), ["pane", "key"], aggregates)
    arrived = pl.concat([held.reduced(rows(*range(10))) for _ in range(count)])
    held.put_partials(arrived, ONE_SLICE)
    return held


def test_settled_partials_are_one_a_group(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "FEWEST", 8)
    store = MemoryStore()
    partials = held(6, store)
    assert store.rows == 60
    partials.settle()
    assert store.rows == 10
    kept = partials.get(0)
    assert kept is not None
    assert kept.drop("pane").sort("key").rows() == [(key, 6) for key in range(10)]


def test_settling_waits_until_a_slice_has_doubled(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "FEWEST", 8)
    store = MemoryStore()
    partials = held(1, store)
    partials.settle()
    partials.put_partials(partials.reduced(rows(*range(9))), ONE_SLICE)
    partials.settle()
    assert store.rows == 19
    partials.put_partials(partials.reduced(rows(9)), ONE_SLICE)
    partials.settle()
    assert store.rows == 10


def test_few_partials_are_left_as_they_are():
    store = MemoryStore()
    held(6, store).settle()
    assert store.rows == 60
