"""How windows close: policies, tables and forms change when answers leave, never what they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.operators import flush as flush_module
from lowwater.operators.aggregates import Call, build
from lowwater.operators.flush import Immediate
from lowwater.operators.low_table import LowTable
from lowwater.operators.window_aggregate import HighAggregate, WindowAggregate
from lowwater.operators.window_state import FORMS, PANE, FormChoice, WindowGrouping
from lowwater.state.store import MemoryStore
from lowwater.stream.element import Element, Punctuation
from lowwater.stream.time_domain import TimeDomain
from lowwater.stream.window import WindowSpec
from tests.support.oracle import answer, multiset, table_rows

SECONDS = TimeDomain(pl.Int64(), 1)
COUNT = [build(Call("n", "count", None)), build(Call("most", "max", pl.col("v")))]
WINDOWS = st.builds(WindowSpec, st.integers(1, 10), st.integers(1, 10))
FLUSHES = st.one_of(
    st.just(Immediate()),
    st.builds(lw.slow, st.integers(1, 4), st.integers(1, 3)),
    st.builds(lw.lazy, st.integers(1, 3)),
)
STEPS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 15), st.integers(0, 9), st.integers(0, 9)), min_size=1),
        st.integers(0, 12),
    ),
    min_size=1,
    max_size=12,
)
"""Rows as (time past the mark, group, value), and by how much the mark moves after them."""


def chunks(steps: Any) -> Iterator[tuple[pl.DataFrame, int]]:
    """Rows that keep the mark before them, and the mark after them."""
    mark = 0
    for rows, further in steps:
        frame = pl.DataFrame(
            [(mark + t, g, v) for t, g, v in rows],
            schema={"ts": pl.Int64, "g": pl.Int64, "v": pl.Int64},
            orient="row",
        )
        mark += further
        yield frame, mark


def all_rows(steps: Any) -> pl.DataFrame:
    return pl.concat(rows for rows, _ in chunks(steps))


def small(draw: Any) -> Any:
    """So few slots that groups share them."""
    slots = draw(st.sampled_from([1, 3, 65_536]))
    return mock.patch.multiple(flush_module, SLOTS=slots, PIECES=draw(st.sampled_from([1, 4, 64])))


def expected(rows: pl.DataFrame, window: WindowSpec) -> Any:
    sql = f"""
        SELECT start, start + {window.range}, g, count(*), max(v)
        FROM (SELECT unnest(generate_series(
                CAST(floor((ts - {window.range}) / {window.slide}.0) AS BIGINT) + 1,
                CAST(floor(ts / {window.slide}.0) AS BIGINT))) * {window.slide} AS start, *
              FROM rows)
        GROUP BY start, g
    """
    return answer(sql, {"rows": rows})


def counted(answers: list[pl.DataFrame]) -> Any:
    return table_rows(pl.concat(answers)) if answers else multiset([])


def rows_of(elements: list[Element]) -> list[pl.DataFrame]:
    return [each for each in elements if isinstance(each, pl.DataFrame)]


@given(STEPS, WINDOWS, FLUSHES, st.data())
def test_no_answer_is_later_than_the_bound(
    steps: Any, window: WindowSpec, flush: Any, data: Any
) -> None:
    late = flush.bound(SECONDS, window.slide)
    with small(data.draw):
        grouping = WindowGrouping("ts", SECONDS, window, ["g"], COUNT)
        kernel = WindowAggregate(MemoryStore(), grouping, flush)
        answers: list[pl.DataFrame] = []
        whole = expected(all_rows(steps), window)
        for rows, mark in chunks(steps):
            answers += rows_of(list(kernel.on_chunk(0, rows)))
            answers += rows_of(list(kernel.on_punctuation(0, Punctuation.linear("ts", mark))))
            due = {each for each in whole if each[1] + late <= mark}
            out = counted(answers)
            assert due <= set(out), f"at {mark}: {due - set(out)} should have left"
            assert all(each[1] <= mark for each in out)
        answers += rows_of(list(kernel.on_end(0)))
        assert counted(answers) == whole
        assert kernel.store.rows == 0


@given(STEPS, WINDOWS, FLUSHES, st.integers(1, 12), st.booleans())
def test_a_table_never_grows_and_its_partials_are_in_time(
    steps: Any, window: WindowSpec, flush: Any, size: int, in_order: bool
) -> None:
    grouping = WindowGrouping("ts", SECONDS, window, ["g"], COUNT)
    low = LowTable(MemoryStore(), grouping, size, flush, in_order)
    high = HighAggregate(MemoryStore(), replace(grouping, time=PANE))
    answers: list[pl.DataFrame] = []
    whole = expected(all_rows(steps), window)

    def up(elements: Any) -> None:
        nonlocal answers
        for each in elements:
            if isinstance(each, Punctuation):
                answers += rows_of(list(high.on_punctuation(0, each)))
                continue
            if in_order and each[PANE].max() >= low._limit(low._mark):
                assert low._old == 0, "a new partial left before an old one"
            answers += rows_of(list(high.on_chunk(0, each)))

    for rows, mark in chunks(steps):
        up(low.on_chunk(0, rows))
        assert low._live == int((low._at >= 0).sum()) <= size
        up(low.on_punctuation(0, Punctuation.linear("ts", mark)))
        late = flush.bound(SECONDS, window.slide)
        out = set(counted(answers))
        assert {each for each in whole if each[1] + late <= mark} <= out
    up(low.close_port(0))
    answers += rows_of(list(high.on_end(0)))
    assert counted(answers) == whole
    assert low.store.rows == high.store.rows == 0


@given(STEPS, WINDOWS, FLUSHES, st.data())
def test_the_form_may_change_at_any_row(
    steps: Any, window: WindowSpec, flush: Any, data: Any
) -> None:
    grouping = WindowGrouping("ts", SECONDS, window, ["g"], COUNT)
    kernel = WindowAggregate(MemoryStore(), grouping, flush)
    answers: list[pl.DataFrame] = []
    for rows, mark in chunks(steps):
        kernel._state.choice.form = data.draw(st.sampled_from(FORMS))
        answers += rows_of(list(kernel.on_chunk(0, rows)))
        answers += rows_of(list(kernel.on_punctuation(0, Punctuation.linear("ts", mark))))
    answers += rows_of(list(kernel.on_end(0)))
    assert counted(answers) == expected(all_rows(steps), window)


def grown(window: WindowSpec, rows: int, row_bytes: int, answers: int, answer_bytes: int) -> str:
    """The form after so much was measured, of which each answer had two partials."""
    choice = FormChoice(window, None)
    choice.add_rows(rows, rows * row_bytes)
    choice.add_answers(2 * answers, answers, answers * answer_bytes)
    return choice.form


def test_the_form_follows_the_data() -> None:
    tumbling, odd = WindowSpec(60, 60), WindowSpec(60, 59)
    assert FormChoice(tumbling, None).form == "panes"
    assert FormChoice(odd, None).form == "windows"  # sixty panes a window, and a row is in two
    assert grown(tumbling, 100_000, 40, 1_000, 24) == "panes"  # many rows a group
    assert grown(tumbling, 2_000 * 4, 16, 4_000, 9_000) == "rows"  # two rows, a large sketch
    assert grown(odd, 5_000, 40, 10_000, 40) == "panes"  # one row a window and group
    assert FormChoice(tumbling, "rows").form == "rows"
    told = FormChoice(tumbling, "rows")
    assert not told.measures
