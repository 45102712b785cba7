"""Which windows have rows, and in which a row is."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from lowwater.stream.time_domain import TimeDomain
from lowwater.stream.window import WindowSpec
from lowwater.updates.windows.open_windows import OpenWindows, count, first_after
from lowwater.updates.windows.window_kernel import WindowEdges, by_key

SPECS = st.builds(WindowSpec, st.integers(1, 8), st.integers(1, 8))


def starts_of(tick: int, window: WindowSpec) -> list[int]:
    """By the plain definition."""
    near = range(tick - window.range - window.slide, tick + 1)
    return [s for s in near if s % window.slide == 0 and s <= tick < s + window.range]


@given(SPECS, st.integers(0, 2**32))
def test_runs_are_the_starts_of_windows_with_rows(window: WindowSpec, seed: int) -> None:
    chance = random.Random(seed)
    marks = WindowEdges(window, TimeDomain(pl.Int64(), 1))
    held, expected, until = OpenWindows(window), set[int](), -(10**9)
    for _ in range(chance.randint(1, 8)):
        ticks = np.array([chance.randint(-20, 40) for _ in range(chance.randint(1, 5))])
        ticks = ticks[marks.window.covers(ticks)]
        ticks = ticks[ticks >= until + window.range]
        if len(ticks):
            held.add(ticks)
            expected |= {s for tick in ticks.tolist() for s in starts_of(tick, window)}
        assert unrolled(held.runs, window.slide) == sorted(expected)
        assert held.earliest == min(expected, default=None)
        assert all(a[1] + window.slide < b[0] for a, b in pairwise(held.runs))
        if chance.random() < 0.4:
            until = max(until, chance.randint(-3, 6) * window.slide)
            done = held.complete(until)
            assert unrolled(done, window.slide) == sorted(s for s in expected if s < until)
            assert count(done, window.slide) == len(unrolled(done, window.slide))
            expected = {s for s in expected if s >= until}


def unrolled(runs: list[tuple[int, int]], slide: int) -> list[int]:
    return [start for first, last in runs for start in range(first, last + 1, slide)]


def test_the_first_start_after_another() -> None:
    runs = [(0, 4), (10, 14)]
    found = [first_after(runs, start, 2) for start in (-5, 0, 2, 4, 12, 14)]
    assert found == [0, 2, 4, 10, 14, None]


@given(SPECS, st.lists(st.integers(-30, 30), min_size=1, max_size=8))
def test_a_row_is_spread_over_all_windows_it_is_in(window: WindowSpec, times: list[int]) -> None:
    marks = WindowEdges(window, TimeDomain(pl.Int64(), 1))
    rows, starts = marks.spread(np.array(times))
    expected = [(at, s) for at, tick in enumerate(times) for s in starts_of(tick, window)]
    assert list(zip(rows.tolist(), starts.tolist(), strict=True)) == expected
    inside = [bool(starts_of(tick, window)) for tick in times]
    assert marks.window.covers(np.array(times)).tolist() == inside


def test_edges_come_in_front_and_have_the_type_of_the_time() -> None:
    domain = TimeDomain(pl.Datetime("ms"), 1_000)
    marked = WindowEdges(WindowSpec(5, 5), domain).marked(
        pl.DataFrame({"v": [1, 2]}), np.array([0, 5])
    )
    assert dict(marked.schema) == {
        "window_start": pl.Datetime("ms"),
        "window_end": pl.Datetime("ms"),
        "v": pl.Int64,
    }
    assert marked["window_end"].to_physical().to_list() == [5, 10]


def test_rows_are_told_apart_by_key_in_the_order_they_come() -> None:
    rows = pl.DataFrame({"k": ["b", None, "b", "a"], "v": [1, 2, 3, 4]})
    found = [(key, at.tolist()) for key, at in by_key(rows, ["k"])]
    assert found == [(("b",), [0, 2]), ((None,), [1]), (("a",), [3])]
    assert [(key, at.tolist()) for key, at in by_key(rows, [])] == [((), [0, 1, 2, 3])]
    assert [key for key, _ in by_key(rows[1:2], ["v", "k"])] == [(2, None)]
