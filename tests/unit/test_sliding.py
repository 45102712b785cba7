"""Windows that slide on change: instants, ties, types, floats that do not drift, refusals."""

from __future__ import annotations

import math
import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.operators.aggregates import Call
from lowwater.operators.exact_sums import digits, rounded
from lowwater.operators.sliding_aggregate import SlidingAggregate
from lowwater.operators.sliding_values import best_between
from lowwater.state.index import ChunkKey
from lowwater.state.keyed_rows import KeyedRows
from lowwater.state.store import MemoryStore
from lowwater.state.time_buffer import TimeBuffer
from lowwater.stream.element import END_OF_TIME, Chunk, Punctuation
from lowwater.stream.time_domain import TimeDomain

SECONDS = TimeDomain(pl.Int64(), 1)


def stream(rows: dict[str, Any], **schema: Any) -> lw.Stream:
    frame = pl.DataFrame(rows, schema_overrides=schema)
    return lw.stream(frame, name="s", time="ts", progress=lw.within("1 hour"), jump=None)


def answers(query: lw.Stream, **options: Any) -> list[tuple[Any, ...]]:
    """The rows without the start of the window."""
    frame = pl.DataFrame(query.collect(**options))
    assert dict(frame.schema) == query.schema
    assert (frame["window_end"].is_sorted()) or not frame.height
    return frame.drop("window_start").rows()


def changes(rows: dict[str, Any], size: Any = 10, by: str | None = None, **wanted: str) -> Any:
    windows = stream(rows).window(size, slide="on change")
    return answers((windows.group_by(by) if by else windows).agg(**wanted))


# ---- instants ------------------------------------------------------------------------------------


def test_a_row_counts_from_its_time_until_exactly_a_range_later() -> None:
    assert changes({"ts": [3, 8]}, n="count(*)") == [(3, 1), (8, 2), (13, 1), (18, 0)]


def test_columns_are_the_window_the_groups_and_the_aggregates() -> None:
    query = stream({"ts": [5], "k": ["a"]}).window(10, slide="on change").group_by("k")
    counted = query.agg(n="count(*)")
    assert counted.columns == ["window_start", "window_end", "k", "n"]
    assert counted.time == "window_end"
    assert counted.collect().to_pylist() == [
        {"window_start": -5, "window_end": 5, "k": "a", "n": 1},
        {"window_start": 5, "window_end": 15, "k": "a", "n": 0},
    ]


def test_rows_that_share_an_instant_are_one_change() -> None:
    assert changes({"ts": [2, 2, 2]}, n="count(*)") == [(2, 3), (12, 0)]


def test_a_row_that_comes_when_another_leaves_changes_no_count() -> None:
    rows = {"ts": [0, 10, 20], "v": [1, 2, 2]}
    assert changes(rows, n="count(*)") == [(0, 1), (30, 0)]
    assert changes(rows, total="sum(v)") == [(0, 1), (10, 2), (30, None)]
    assert changes(rows, kinds="count(DISTINCT v)") == [(0, 1), (30, 0)]
    assert changes(rows, most="max(v)") == [(0, 1), (10, 2), (30, None)]


def test_one_tick_between_leaving_and_coming_is_an_empty_window() -> None:
    assert changes({"ts": [0, 11]}, n="count(*)") == [(0, 1), (10, 0), (11, 1), (21, 0)]


def test_a_value_that_is_seen_again_in_time_stays() -> None:
    rows = {"ts": [0, 6, 9, 30], "v": ["a", "a", "b", "a"]}
    found = changes(rows, kinds="count(DISTINCT v)")
    assert found == [(0, 1), (9, 2), (16, 1), (19, 0), (30, 1), (40, 0)]


def test_an_extreme_gives_way_to_the_next_best_when_it_leaves() -> None:
    rows = {"ts": [0, 1, 2, 8], "v": [9, 5, 7, 3]}
    assert changes(rows, most="max(v)") == [(0, 9), (10, 7), (12, 3), (18, None)]
    assert changes(rows, least="min(v)") == [(0, 9), (1, 5), (8, 3), (18, None)]


def test_nothing_comes_out_where_no_aggregate_changes() -> None:
    rows = {"ts": [0, 1, 2], "v": [None, 4, None]}
    assert changes(rows, total="sum(v)") == [(1, 4), (11, None)]
    assert changes(rows, some="count(v)", total="sum(v)") == [(1, 1, 4), (11, 0, None)]
    assert changes({"ts": [0, 1], "v": [0, 0]}, total="sum(v)") == [(0, 0), (11, None)]


def test_groups_change_by_themselves_and_null_is_one() -> None:
    rows = {"ts": [0, 0, 4, 5], "k": ["a", None, "a", None]}
    found = changes(rows, by="k", n="count(*)")
    named = [(at, n) for at, k, n in found if k == "a"]
    assert named == [(0, 1), (4, 2), (10, 1), (14, 0)]
    nameless = [(at, n) for at, k, n in found if k is None]
    assert nameless == [(0, 1), (5, 2), (10, 1), (15, 0)]


def test_an_answer_leaves_when_the_mark_is_past_its_instant() -> None:
    kernel = SlidingAggregate(
        MemoryStore(), "ts", SECONDS, 10, ["k"], [Call("n", "count", None)], 1
    )

    def heard(mark: int) -> list[tuple[Any, ...]]:
        *rows, start, end = kernel.on_punctuation(0, Punctuation.linear("ts", mark))
        assert (start, end) == (
            Punctuation.linear("window_start", mark - 10),
            Punctuation.linear("window_end", mark),
        )
        return [row for chunk in rows for row in chunk.rows()]  # type: ignore[union-attr]

    assert kernel.on_chunk(0, pl.DataFrame({"ts": [7, 5], "k": [1, 1]})) == []
    assert [(ask.attribute, ask.mark) for ask in kernel.requests()] == [("ts", 6)]
    assert heard(5) == []  # another row may come at 5
    assert heard(6) == [(-5, 5, 1, 1)]
    assert kernel.on_chunk(0, pl.DataFrame({"ts": [6], "k": [2]})) == []
    assert heard(8) == [(-4, 6, 2, 1), (-3, 7, 1, 2)]
    assert [ask.mark for ask in kernel.requests()] == [16]
    assert heard(15) == []
    assert heard(17) == [(5, 15, 1, 1), (6, 16, 2, 0)]
    assert [ask.mark for ask in kernel.needs("window_end", 30)] == [30]
    assert [ask.mark for ask in kernel.needs("window_start", 30)] == [40]
    assert list(kernel.needs("n", 30)) == []
    assert kernel.on_punctuation(0, Punctuation.linear("ts", 17)) == []
    assert kernel.on_punctuation(0, Punctuation.linear("v", 99)) == []
    (last, _) = kernel.on_end(0)
    assert last.rows() == [(7, 17, 1, 0)]  # type: ignore[union-attr]
    assert kernel.store.rows == 0


def test_a_group_that_is_empty_again_is_forgotten() -> None:
    store = MemoryStore()
    calls = [
        Call("n", "count", None),
        Call("f", "sum", pl.col("f"), dtype=pl.Float64()),
        Call("m", "max", pl.col("f"), dtype=pl.Float64()),
        Call("d", "count", pl.col("f"), distinct=True, dtype=pl.Float64()),
    ]
    kernel = SlidingAggregate(store, "ts", SECONDS, 10, ["k"], calls, 1)
    for step in range(200):
        rows = pl.DataFrame({"ts": [3 * step] * 2, "k": [step, step + 1], "f": [0.1, 1e300]})
        kernel.on_chunk(0, rows)
        kernel.on_punctuation(0, Punctuation.linear("ts", 3 * step + 1))
    held = store.rows
    assert held < 90
    kernel.on_punctuation(0, Punctuation.linear("ts", 5_000))
    assert store.rows == 0


# ---- types ---------------------------------------------------------------------------------------


def test_decimals_are_added_exactly_and_without_a_limit_of_their_own() -> None:
    rows = {"ts": [0, 1, 2], "v": [Decimal("9.99"), Decimal("0.01"), None]}
    query = stream(rows, v=pl.Decimal(3, 2)).window(10, slide="on change")
    summed = query.agg(total="sum(v)", mean="avg(v)", most="max(v)", kinds="count(DISTINCT v)")
    assert summed.schema["total"] == pl.Decimal(38, 2)
    assert answers(summed) == [
        (0, Decimal("9.99"), 9.99, Decimal("9.99"), 1),
        (1, Decimal("10.00"), 5.0, Decimal("9.99"), 2),
        (10, Decimal("0.01"), 0.01, Decimal("0.01"), 1),
        (11, None, None, None, 0),
    ]


def test_days_moments_and_whole_milliseconds() -> None:
    days = lw.stream(pl.DataFrame({"d": [date(2024, 2, 28), date(2024, 3, 1)]}), time="d")
    counted = days.window("2 days", slide="ON  Change").agg(n="count(*)", last="max(d)")
    assert [(row[0], row[1]) for row in answers(counted)] == [
        (datetime(2024, 2, 28), 1),
        (datetime(2024, 3, 1), 1),
        (datetime(2024, 3, 3), 0),
    ]
    moments = [datetime(1969, 12, 31, 23, 59, 59), datetime(1970, 1, 1)]
    seen = lw.stream(pl.DataFrame({"at": moments}, schema={"at": pl.Datetime("ns")}), time="at")
    assert answers(seen.window("1 second", slide="on change").agg(n="count(*)", m="min(at)")) == [
        (moments[0], 1, moments[0]),
        (moments[1], 1, moments[1]),
        (moments[1] + timedelta(seconds=1), 0, None),
    ]
    ticks = lw.stream(pl.DataFrame({"t": [-3, 499]}), time="t", unit="ms")
    counted = ticks.window("500 ms", slide="on change").agg(n="count(*)")
    assert answers(counted) == [(-3, 1), (497, 0), (499, 1), (999, 0)]


def test_extremes_and_kinds_of_many_types() -> None:
    nan = float("nan")
    rows = {
        "ts": [0, 1, 2, 3],
        "text": ["b", "é", None, "a"],
        "flag": [True, None, False, True],
        "f": [0.0, nan, -0.0, -math.inf],
        "day": [date(2024, 1, 2), date(2024, 1, 1), None, None],
        "bytes": [b"b", b"a", None, b"c"],
        "kind": ["low", "high", None, "low"],
    }
    types = {"f": pl.Float32, "kind": pl.Enum(["low", "high"])}
    windows = stream(rows, **types).window(2, slide="on change")
    wanted = {
        f"{name}_{what}": f"{call}{name})"
        for name in ("text", "flag", "f", "day", "bytes", "kind")
        for what, call in (("min", "min("), ("max", "max("), ("n", "count(DISTINCT "))
    }
    found = {name: [] for name in wanted}  # type: ignore[var-annotated]
    for row in pl.DataFrame(windows.agg(**wanted).collect()).to_dicts():
        for name in wanted:
            value = row[name]
            found[name].append("NaN" if isinstance(value, float) and math.isnan(value) else value)
    assert found["text_min"] == ["b", "b", "é", "a", "a", None]
    assert found["text_max"] == ["b", "é", "é", "a", "a", None]
    assert found["text_n"] == [1, 2, 1, 1, 1, 0]
    assert found["flag_min"] == [True, True, False, False, True, None]
    assert found["flag_n"] == [1, 1, 1, 2, 1, 0]
    assert found["f_min"] == [0.0, 0.0, 0.0, -math.inf, -math.inf, None]
    assert found["f_max"] == [0.0, "NaN", "NaN", 0.0, -math.inf, None]
    assert found["f_n"] == [1, 2, 2, 2, 1, 0]
    assert found["day_min"] == [date(2024, 1, 2), *[date(2024, 1, 1)] * 2, None, None, None]
    assert found["bytes_max"] == [b"b", b"b", b"a", b"c", b"c", None]
    assert found["kind_max"] == ["low", "high", "high", "low", "low", None]


def test_groups_of_many_types() -> None:
    nan = float("nan")
    rows = {"ts": [0, 1, 2, 3], "f": [nan, -0.0, 0.0, nan], "l": [[1], None, [1], [1]]}
    windows = stream(rows).window(10, slide="on change")
    by_number = pl.DataFrame(windows.group_by("f").agg(n="count(*)").collect())
    assert by_number["n"].to_list() == [1, 1, 2, 2, 1, 1, 0, 0]
    by_list = pl.DataFrame(windows.group_by("l").agg(n="count(*)").collect())
    assert by_list.filter(pl.col("l").is_null())["n"].to_list() == [1, 0]
    assert by_list.filter(pl.col("l").is_not_null())["n"].to_list() == [1, 2, 3, 2, 1, 0]


def test_columns_may_be_called_anything() -> None:
    names = ["left", "at", "group", "before", "best", "value"]
    rows = {"ts": [0, 3, 5], **{name: [1, 1, 2] for name in names}}
    windows = stream(rows).window(4, slide="on change").group_by(*names)
    found = answers(windows.agg(old="max(ts)", number="count(DISTINCT left)", last="avg(at)"))
    assert [(row[0], *row[-3:]) for row in found] == [
        (0, 0, 1, 1.0),
        (3, 3, 1, 1.0),
        (5, 5, 1, 2.0),
        (7, None, 0, None),
        (9, None, 0, None),
    ]


def test_conditions_inside_and_expressions_around() -> None:
    rows = {"ts": [0, 1, 2], "v": [1, 20, 30]}
    found = changes(rows, big="count(*) FILTER (WHERE v > 10)", twice="sum(v * 2)", one="count(1)")
    assert [row[:2] for row in found] == [(0, 0), (1, 1), (2, 2), (10, 2), (11, 1), (12, 0)]
    assert [row[2] for row in found] == [2, 42, 102, 100, 60, None]
    assert [row[3] for row in found] == [1, 2, 3, 2, 1, 0]


# ---- floats --------------------------------------------------------------------------------------

EDGES = [5e-324, -5e-324, 2.2e-308, 1.7e308, -1e308, 0.0, -0.0, 0.1, 0.2, 0.3, 1e16, 1.0, -1.0]
FLOATS = st.one_of(st.sampled_from(EDGES), st.floats(allow_nan=False, allow_infinity=False))


@given(st.lists(FLOATS, min_size=1, max_size=12))
def test_a_sum_is_the_exact_one_rounded_once(values: list[float]) -> None:
    table, low = digits(np.array(values))
    assert rounded(table, low).tolist() == values
    try:
        exact = math.fsum(values)
    except OverflowError:  # it is too large on the way
        return
    assert rounded(table.sum(axis=0, keepdims=True), low).tolist() == [exact]


@given(st.lists(st.tuples(st.integers(0, 40), FLOATS), min_size=1, max_size=20), st.integers(1, 30))
def test_sums_of_floats_are_those_of_the_rows_in_the_window(
    rows: list[tuple[int, float]], size: int
) -> None:
    instants = sorted({at + by for at, _ in rows for by in (0, size)})
    expected, before = [], None
    for at in instants:
        inside = [value for ts, value in rows if at - size < ts <= at]
        try:
            now = math.fsum(inside) if inside else None
        except OverflowError:
            return
        if now != before:
            expected.append((at, now))
        before = now
    frame = {"ts": [at for at, _ in rows], "v": [value for _, value in rows]}
    windows = stream(frame).window(size, slide="on change").agg(total="sum(v)")
    assert answers(windows, chunk_rows=3) == expected


def test_a_sum_of_floats_does_not_drift() -> None:
    chance = random.Random(1)
    values = [chance.choice([0.1, 1e17, -1e17, 1e-9, 0.3]) for _ in range(3_000)]
    rows = pl.DataFrame({"ts": range(3_000), "v": values})
    query = (
        lw.stream(rows, time="ts").window(40, slide="on change").agg(total="sum(v)", mean="avg(v)")
    )
    found = {row[0]: row[1:] for row in answers(query, chunk_rows=100)}
    for at in range(0, 3_040, 7):
        inside = values[max(0, at - 39) : at + 1]
        if at in found:
            total = math.fsum(inside) if inside else None
            mean = total / len(inside) if total is not None else None
            assert found[at] == (total, mean)
    assert found[3_039] == (None, None)


def test_what_is_no_number_is_gone_when_it_has_left() -> None:
    nan, inf = float("nan"), math.inf
    rows = {"ts": [0, 1, 2, 3, 20], "v": [1.5, inf, -inf, nan, 2.0]}
    found = changes(rows, total="sum(v)")
    shown = [(at, "NaN" if v is not None and math.isnan(v) else v) for at, v in found]
    assert shown == [(0, 1.5), (1, inf), (2, "NaN"), (13, None), (20, 2.0), (30, None)]


def test_narrow_floats_are_rounded_to_their_type() -> None:
    rows = pl.DataFrame({"ts": [0, 1], "v": [0.1, 0.2]}, schema={"ts": pl.Int64, "v": pl.Float32})
    query = lw.stream(rows, time="ts").window(10, slide="on change").agg(total="sum(v)")
    assert query.schema["total"] == pl.Float32
    exact = float(np.float32(0.1)) + float(np.float32(0.2))
    assert answers(query)[1] == (1, float(np.float32(exact)))


def test_a_sum_that_does_not_fit_is_an_error_and_its_mean_is_not() -> None:
    most = 2**63 - 1
    rows = {"ts": [0, 1, 20], "v": [most, most, 5]}
    with pytest.raises(lw.OperatorError, match="the sum does not fit BIGINT"):
        changes(rows, total="sum(v)")
    means = changes(rows, mean="avg(v)")
    assert means == [(0, 2.0**63), (11, None), (20, 5.0), (30, None)]


# ---- arithmetic and state ------------------------------------------------------------------------


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.data())
def test_best_between_is_the_greatest_of_a_stretch(codes: list[int], data: Any) -> None:
    place = st.integers(0, len(codes))
    pairs = data.draw(st.lists(st.tuples(place, place).map(sorted), min_size=1))
    first, last = (np.array(each) for each in zip(*pairs, strict=True))
    found = best_between(np.array(codes), first, last)
    assert found.tolist() == [max(codes[a:b], default=0) for a, b in pairs]


class Counting(MemoryStore):
    """A store that counts what is read of it."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[ChunkKey] = []

    def get(self, key: ChunkKey) -> Chunk:
        self.read.append(key)
        return super().get(key)


@given(st.data())
def test_rows_by_time_are_taken_out_once_they_have_passed(data: Any) -> None:
    held, left = TimeBuffer(MemoryStore(), "x", "t", 5), []  # type: ignore[var-annotated]
    expected: list[int] = []
    for _ in range(data.draw(st.integers(1, 12))):
        times = data.draw(st.lists(st.integers(0, 60), max_size=8))
        held.put(pl.DataFrame({"t": times}, schema={"t": pl.Int64}))
        left += times
        assert held.least == min(left, default=END_OF_TIME)
        bound = data.draw(st.integers(0, 70))
        found = held.take(bound)
        expected = sorted(each for each in left if each < bound)
        assert (sorted(found["t"].to_list()) if found is not None else []) == expected
        left = [each for each in left if each >= bound]


def test_only_slices_that_lose_a_row_are_read() -> None:
    store = Counting()
    held = TimeBuffer(store, "x", "t", 10)
    held.put(pl.DataFrame({"t": [5, 15, 25, 35]}))
    store.read.clear()
    assert held.take(15).rows() == [(5,)]  # type: ignore[union-attr]
    assert [key.slice for key in store.read] == [0]
    assert held.take(15) is None
    assert [key.slice for key in store.read] == [0]


def test_keys_are_found_in_few_of_many_slices() -> None:
    store = Counting()
    table = KeyedRows(store, "x", ["k", "s"])
    many = pl.DataFrame({"k": range(20_000), "s": ["a", None] * 10_000, "v": range(20_000)})
    table.replace(many.select("k", "s"), many)
    assert len(store.slices("x")) >= 4
    store.read.clear()
    wanted = pl.DataFrame({"k": [7, 8, -1], "s": [None, "a", "a"]})
    assert sorted(table.look_up(wanted).rows()) == [(7, None, 7), (8, "a", 8)]  # type: ignore[union-attr]
    assert len(store.read) <= 3
    other = pl.DataFrame({"k": [7], "s": [None], "v": [70]}, schema=many.schema)
    table.replace(wanted, other)
    assert table.look_up(wanted).rows() == [(7, None, 70)]  # type: ignore[union-attr]
    assert store.rows == 19_999
    table.replace(many.select("k", "s"), None)
    assert store.rows == 0
    assert table.look_up(wanted) is None


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("aggregate", "words"),
    [
        ("stddev(v)", "has no stddev; it has count"),
        ("first(v)", "has no first"),
        ("collect(v)", "has no collect"),
        ("approx_quantile(v, 0.5)", "has no approx_quantile"),
        ("sum(DISTINCT v)", r"sum\(DISTINCT ...\) is not supported"),
        ("max(l)", "cannot be compared"),
        ("sum(s)", "needs numbers"),
    ],
)
def test_aggregates_that_do_not_slide_are_refused(aggregate: str, words: str) -> None:
    rows = stream({"ts": [1], "v": [1], "l": [[1]], "s": ["a"]})
    with pytest.raises(lw.QueryError, match=words):
        rows.window(10, slide="on change").agg(x=aggregate)


def test_options_that_do_not_go_with_it_are_refused() -> None:
    rows = stream({"ts": [1], "v": [1]})
    own = lw.aggregate(init=int, add=lambda a, _: a, merge=max, finish=lambda a: a, columns=("v",))
    with pytest.raises(lw.QueryError, match="has no aggregates of your own"):
        rows.window(10, slide="on change").agg(x=own)
    for option in ({"flush": lw.lazy()}, {"keep": "rows"}, {"table": 5}):
        with pytest.raises(lw.OptionError, match="slides on change never does"):
            rows.window(10, slide="on change", **option)  # type: ignore[arg-type]
    with pytest.raises(lw.OptionError, match="a length of time or a number of rows="):
        rows.window(slide="on change", rows=5)
    with pytest.raises(lw.OptionError, match="or 'on change'"):
        rows.window(10, slide="on chnage")
    with pytest.raises(lw.OptionError, match="longer than zero"):
        rows.window(0, slide="on change")
    with pytest.raises(lw.QueryError, match="'window_end' is a column of every window aggregate"):
        rows.window(10, slide="on change").agg(window_end="count(*)")


def test_explain_says_what_it_does() -> None:
    text = stream({"ts": [1], "k": [1]}).window("10 minutes", slide="on change")
    shown = text.group_by("k").agg(n="count(*)").explain()
    assert "sliding#1  range 10 minutes, on change, on ts, by k: count(*) AS n" in shown
    assert "progress: instants before the mark are answered" in shown
    assert "partitioned by: k" in shown
    assert "punctuates: ts at every step" in shown
    assert "rows go to buckets: by k" in shown
    assert "rows go to buckets: one bucket" in text.agg(n="count(*)").explain()
