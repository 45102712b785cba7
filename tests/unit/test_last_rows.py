"""Windows that slide by rows: which rows are kept, and what is answered when."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.operators.aggregates import Call, build, lift
from lowwater.operators.kernel import ALONE, Kernel
from lowwater.operators.span_merge import merge_spans
from lowwater.plan.physical.planner import compile_plan
from lowwater.state.store import MemoryStore
from lowwater.stream.element import Punctuation

EMPTY = pl.DataFrame(schema={"ts": pl.Int64, "k": pl.Int64, "v": pl.Int64})


def made(**window: Any) -> tuple[Kernel, MemoryStore]:
    source = lw.stream(EMPTY, name="s", time="ts")
    query = source.window(window.pop("range", None), **window).agg(n="count(*)", total="sum(v)")
    (operator,) = compile_plan(query._node).kernels
    store = MemoryStore()
    return operator.build(store, ALONE), store


def events(*rows: tuple[int, int | None, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=EMPTY.schema, orient="row")


def told(kernel: Kernel, mark: int) -> list[tuple[Any, ...]]:
    """The answers that leave when the mark moves."""
    elements = kernel.on_punctuation(0, Punctuation.linear("ts", mark))
    return [row for each in elements if isinstance(each, pl.DataFrame) for row in each.rows()]


def test_a_key_keeps_one_row_less_than_its_window():
    kernel, store = made(rows=4, slide_rows=1, by="k")
    for second in range(50):
        kernel.on_chunk(0, events((second, 1, second), (second, 2, second), (second, None, 1)))
        told(kernel, second + 1)
        assert store.rows == 3 * min(second + 1, 3)


def test_rows_that_no_later_answer_needs_are_dropped():
    kernel, store = made(rows=2, slide_rows=5, by="k")
    counts = []
    for second in range(10):
        kernel.on_chunk(0, events((second, 1, second)))
        told(kernel, second + 1)
        counts.append(store.rows)
    # The fourth row is in the window of the fifth; the others are kept for the number alone.
    assert counts == [1] * 10


def test_a_window_of_time_keeps_the_rows_of_a_range():
    kernel, store = made(range="10 seconds", slide_rows=3)
    for second in range(100):
        kernel.on_chunk(0, events((second, 1, second)))
        told(kernel, second + 1)
        assert store.rows <= 10
    told(kernel, 1_000)
    assert store.rows == 1  # its number is known


def test_a_key_without_rows_is_forgotten():
    kernel, store = made(rows=3, slide_rows=1, by="k", expire="10 seconds")
    kernel.on_chunk(0, events((0, 1, 5), (1, 1, 6), (2, 2, 7)))
    assert [row[2:] for row in told(kernel, 3)] == [(1, 1, 5), (1, 2, 11), (2, 1, 7)]
    assert store.rows == 3
    kernel.on_chunk(0, events((11, 1, 8)))
    assert told(kernel, 12) == [(11, 11, 1, 1, 8)]  # ten seconds after the last
    assert store.rows == 1


def test_a_row_waits_until_no_earlier_one_can_come():
    kernel, _ = made(rows=2, slide_rows=1, by="k")
    kernel.on_chunk(0, events((5, 1, 50)))
    assert told(kernel, 5) == []
    assert [(each.attribute, each.mark) for each in kernel.requests()] == [("ts", 6)]
    kernel.on_chunk(0, events((5, 1, 20)))  # of one time, the lesser value is counted first
    assert told(kernel, 6) == [(5, 5, 1, 1, 20), (5, 5, 1, 2, 70)]
    assert kernel.requests() == []


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40), st.data())
def test_spans_are_merged_as_one_by_one(values: list[int], data: Any) -> None:
    spans = st.tuples(st.integers(0, len(values) - 1), st.integers(1, len(values)))
    chosen = data.draw(st.lists(spans.filter(lambda s: s[0] < s[1]), min_size=1, max_size=10))
    rows = pl.DataFrame({"v": values})
    calls = [
        build(Call("total", "sum", pl.col("v"), dtype=pl.Int64())),
        build(Call("kinds", "count", pl.col("v"), distinct=True)),
    ]
    starts, ends = (np.array(each, np.int64) for each in zip(*chosen, strict=True))
    merged = merge_spans(lift(rows, [], calls), starts, ends, calls)
    found = merged.select(each.finish for each in calls).rows()
    assert found == [(sum(part), len(set(part))) for part in (values[a:b] for a, b in chosen)]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "neither": ({"by": "k"}, "a length of time or a number of rows="),
    "both": ({"range": 5, "rows": 3, "by": "k"}, "one of the two"),
    "slides by time": ({"range": 5, "slide": 2, "by": "k"}, "the window slides by rows"),
    "no slide": ({"range": 5, "by": "k"}, "the window slides by rows"),
    "unknown key": ({"rows": 5, "by": "nix"}, "unknown key column"),
    "no key to forget": ({"range": 5, "slide_rows": 2, "expire": 9}, "name them by by="),
    "rows as they come": ({"rows": 2, "expire": 9}, "name them by by="),
    "forgets too soon": (
        {"range": 5, "slide_rows": 2, "by": "k", "expire": 4},
        "at least the length of the window",
    ),
    "never closes": ({"rows": 5, "by": "k", "keep": "rows"}, "one that slides by rows never does"),
    "half rows": ({"rows": 5, "by": "k", "slide_rows": 0}, "a whole number above zero"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_windows_that_have_no_meaning_are_refused(name: str):
    window, message = REFUSED[name]
    source = lw.stream(EMPTY, name="s", time="ts")
    with pytest.raises(lw.LowwaterError) as caught:
        source.window(window.pop("range", None), window.pop("slide", None), **window)
    assert message in str(caught.value)


def test_groups_are_the_keys():
    source = lw.stream(EMPTY, name="s", time="ts")
    window = source.window(rows=2, by="k")
    assert window.group_by("k").agg(n="count(*)").columns == [
        "window_start",
        "window_end",
        "k",
        "n",
    ]
    with pytest.raises(lw.QueryError, match="Name the groups by by="):
        window.group_by("k", "v").agg(n="count(*)")


def test_values_without_an_order_are_refused():
    nested = pl.DataFrame(schema={"ts": pl.Int64, "x": pl.List(pl.Int64)})
    source = lw.stream(nested, name="s", time="ts")
    with pytest.raises(lw.QueryError, match="have no order"):
        source.window("1 minute", slide_rows=2).agg(all="collect(x)")


def test_explain_warns_where_keys_are_kept_for_ever():
    source = lw.stream(EMPTY, name="s", time="ts")
    warning = "the state grows with the number of keys"
    for window, warned in (
        (source.window(rows=3, by="k"), True),
        (source.window("5 seconds", slide_rows=2, by="k"), True),
        (source.window(rows=3, by="k", expire="1 hour"), False),
        (source.window("5 seconds", slide_rows=1, by="k"), False),
        (source.window("5 seconds", slide_rows=2), False),
    ):
        assert (warning in window.agg(n="count(*)").explain()) is warned
