"""First rows of independent streams confirm each other, and one far ahead alone moves no mark."""

from __future__ import annotations

import warnings
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from lowwater.progress.first_rows import FirstRows
from lowwater.progress.intake import Intake
from lowwater.stream.element import BEGINNING
from tests.support.local_spark import LocalSpark, Unordered
from tests.support.oracle import answer, table_rows
from tests.unit.progress.judging import ANY, spec_of, table
from tests.unit.running import finished

DAY = 86_400
times = st.lists(st.integers(0, 40), min_size=1, max_size=8).map(sorted)
inputs = st.lists(times, min_size=2, max_size=3)
orders = st.lists(st.integers(0, 2), max_size=24)
SQL = "SELECT w, w + 10, count(*) FROM (SELECT ts // 10 * 10 AS w FROM a) GROUP BY w"


def arriving(sent: list[list[int]], order: list[int]) -> list[pl.DataFrame]:
    """The logs of some inputs whose rows arrive in an order of inputs, one a second."""
    left = [list(each) for each in sent]
    turns = [at for at in order if at < len(left)] + list(range(len(left))) * 9
    rows: list[list[tuple[float, int]]] = [[] for _ in left]
    for second, at in enumerate(turns):
        if left[at]:
            rows[at].append((float(second), left[at].pop(0)))
    return [
        pl.DataFrame(each, schema={"at": pl.Float64, "ts": pl.Int64}, orient="row") for each in rows
    ]


def counted(sources: list[Any]) -> Stream:
    streams = [lw.stream(each, name=f"s{at}", time="ts") for at, each in enumerate(sources)]
    union = streams[0].select("ts")
    for each in streams[1:]:
        union = union.union(each.select("ts"))
    return union.window(10).agg(n="count(*)")


@given(inputs, orders, st.integers(0, 2))
def test_no_honest_row_is_late_whatever_first_rows_are_far_ahead(
    sent: list[list[int]], order: list[int], stray: int
) -> None:
    # At most one input begins with a row far ahead, which the next row of that input contradicts.
    far = [[10**9, *each] if at == stray else each for at, each in enumerate(sent)]
    logs = arriving(far, order)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = finished(counted([lw.replay(each, "at") for each in logs]), tick=0)
    assert run.metrics().late_rows == 0
    assert table_rows(run.results()) == answer(SQL, {"a": pl.concat(logs)})


@given(inputs, st.integers(0, 2), st.integers(0, 2**16), st.integers(1, 3))
def test_on_spark_too(sent: list[list[int]], stray: int, seed: int, buckets: int) -> None:
    far = [[10**9, *each] if at == stray else each for at, each in enumerate(sent)]
    tables = [pl.DataFrame({"ts": each}, schema={"ts": pl.Int64}) for each in far]
    sources = [Unordered(each, [1] * each.height) for each in tables]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        local = LocalSpark(counted(sources), seed, buckets)
        found = local.results()
    assert all(local.late(f"s{at}") is None for at in range(len(tables)))
    assert table_rows(found) == answer(SQL, {"a": pl.concat(tables)})


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3 * DAY)), max_size=12))
def test_marks_are_those_of_the_plain_rule(rows: list[tuple[int, int]]) -> None:
    """A stream's first row moves its mark if some other stream's newest time is within a day."""
    streams = {
        at: Intake(spec_of(name=f"s{at}", jump=lw.jump("1 day")), {"ts": ANY}) for at in range(3)
    }
    plain = {at: Intake(each.spec, {"ts": ANY}) for at, each in streams.items()}
    first_rows = FirstRows(streams, {at: at for at in streams})
    sent: dict[int, list[int]] = {at: [] for at in streams}
    newest: dict[int, int] = {}
    confirmed: dict[int, int] = {}
    for at, time in rows:
        time = max([time, *sent[at]])  # noqa: PLW2901 (honest rows: each stream is ordered)
        sent[at].append(time)
        for each in (streams, plain):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                each[at].take(table([(time, "a", None)]), now=0)
        first_rows.confirm(at)
        newest[at] = int(plain[at].trackers["ts"].newest_times().max())  # type: ignore[union-attr]
        for one, own in newest.items():
            near = any(abs(own - other) <= DAY for two, other in newest.items() if two != one)
            if len(sent[one]) == 1 and near:
                confirmed[one] = own
        for one, stream in streams.items():
            by_rows = plain[one].mark("ts")
            assert stream.mark("ts") == max(by_rows, confirmed.get(one, BEGINNING))
