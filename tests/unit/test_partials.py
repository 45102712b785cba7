"""What partial aggregates leave in the store."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.operators import folded_partials as folded
from lowwater.operators import partials as module
from lowwater.operators.aggregates import Call, build
from lowwater.operators.kernel import ALONE
from lowwater.operators.partials import Partials
from lowwater.plan.physical.planner import compile_plan
from lowwater.state.store import MemoryStore
from lowwater.stream.element import Punctuation
from lowwater.stream.window import WindowSpec
from tests.support.oracle import table_rows

ONE_SLICE = pl.lit(0, pl.Int64)


def rows(*keys: int) -> pl.DataFrame:
    return pl.DataFrame({"pane": [0] * len(keys), "key": keys})


def held(count: int, store: MemoryStore) -> Partials:
    """Partials that hold sets of values, of some groups, from that many senders, as they came."""
    aggregates = [build(Call("n", "count", pl.col("key"), distinct=True))]
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
    assert kept.drop("pane").sort("key").rows() == [(key, [key]) for key in range(10)]


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


# ---- partials of single values are folded -------------------------------------------------------

SUMS = {"n": "count(*)", "total": "sum(v)", "mean": "avg(x)"}
OTHERS = SUMS | {"least": "min(v)", "most": "max(s)", "start": "first(v)", "spread": "stddev(x)"}
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 11),
        st.sampled_from([None, 0, 1, 2, 3]),
        st.sampled_from([0.0, -0.0, float("nan"), None, 1.5]),
        st.none() | st.integers(-(2**58), 2**58),
    ),
    min_size=1,
    max_size=30,
)


def same_hashes(*_: object) -> pl.Expr:
    return pl.col("k").is_null().cast(pl.UInt64)


def events(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    types = {"ts": pl.Int64, "k": pl.Int64, "x": pl.Float64, "v": pl.Int64}
    frame = pl.DataFrame(rows, schema=types, orient="row")
    return frame.with_columns(s=pl.col("v").cast(pl.String))


def without_nan(answers: list[pl.DataFrame]) -> Counter[tuple[Any, ...]]:
    """The answers, with a number for NaN, which is not equal to itself."""
    return table_rows(pl.concat(answers).fill_nan(99.0)) if answers else Counter()


@given(
    EVENTS,
    st.integers(1, 7),
    st.integers(1, 3),
    st.sampled_from([SUMS, OTHERS]),
    st.sampled_from([["k"], ["x", "k"], []]),
    st.booleans(),
    st.data(),
)
def test_an_open_pane_holds_exactly_one_partial_a_group(
    rows: list[tuple[Any, ...]],
    cut: int,
    slide: int,
    asked: dict[str, str],
    groups: list[str],
    collide: bool,
    data: Any,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folded, "FEW", data.draw(st.sampled_from([0, 2, 8_192])))
        patch.setattr(folded, "LARGEST", data.draw(st.sampled_from([3, 262_144])))
        if collide:
            patch.setattr(folded, "hash_of", same_hashes)
        source = lw.stream(events([]), name="s", time="ts")
        query = source.window(4, slide=slide, keep="panes").group_by(*groups).agg(**asked)
        (operator,) = compile_plan(query._node).kernels
        store = MemoryStore()
        kernel = operator.build(store, ALONE)
        window = WindowSpec(4, slide)
        out: list[pl.DataFrame] = []
        kept: list[pl.DataFrame] = []
        came: set[Any] = set()
        mark = -100
        for first in range(0, len(rows), cut):
            chunk = events([each for each in rows[first : first + cut] if each[0] >= mark])
            kept.append(chunk)
            if chunk.height:
                out += [e for e in kernel.on_chunk(0, chunk) if isinstance(e, pl.DataFrame)]
            panes = chunk["ts"] // window.pane * window.pane
            keys = chunk.select((pl.col("x") + 0.0).fill_nan(99.0).alias("x"), "k").select(groups)
            inside = (chunk["ts"] % slide < 4).to_list()
            found = zip(panes, keys.rows() if groups else [()] * chunk.height, inside, strict=True)
            came |= {(pane, key) for pane, key, held in found if held}
            assert store.rows == len(came)
            if data.draw(st.booleans()):
                mark = data.draw(st.integers(mark, 12))
                promised = kernel.on_punctuation(0, Punctuation.linear("ts", mark))
                out += [e for e in promised if isinstance(e, pl.DataFrame)]
                came = {(pane, key) for pane, key in came if pane >= window.first_open(mark)}
                assert store.rows == len(came)
            if data.draw(st.booleans()):
                kernel.settle()
                saved = kernel.snapshot()
                kernel = operator.build(store, ALONE)
                kernel.restore(saved)
        out += [e for e in kernel.on_end(0) if isinstance(e, pl.DataFrame)]
        assert store.rows == 0
        assert kernel.held == (0, 0)
    at_once = operator.build(MemoryStore(), ALONE)
    at_once.on_chunk(0, pl.concat(kept))
    expected = [e for e in at_once.on_end(0) if isinstance(e, pl.DataFrame)]
    assert without_nan(out) == without_nan(expected)


def test_a_row_in_a_large_pane_changes_one_partial():
    store = MemoryStore()
    aggregates = [build(Call("n", "count", None)), build(Call("most", "max", pl.col("key")))]
    partials = Partials(store, pl.col("pane"), ["pane", "key"], aggregates)
    groups = 20_000
    partials.put(rows(*range(groups)), ONE_SLICE)
    for key in (5, groups + 1, 7, 5, groups + 1, groups + 2):
        partials.put(rows(key), ONE_SLICE)
        assert partials.is_folded()
    assert store.rows == groups + 2
    counts = partials.get(0)
    assert counts is not None
    several = counts.filter(pl.col("n__n") > 1).sort("key")
    assert several.select("key", "n__n").rows() == [(5, 3), (7, 2), (groups + 1, 2)]
    assert (counts["key"] == counts["most__max"]).all()
    assert 0 < partials.index_bytes < 40 * groups
    partials.drop(0)
    assert partials.index_bytes == 0
