"""Held rows that leave slowly: when they leave at the latest, and how many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from lowwater.operators import gradual
from lowwater.operators.gradual import GradualRelease
from lowwater.operators.kernel import ALONE
from lowwater.plan.physical.planner import compile_plan
from lowwater.state.slicing import Slicing
from lowwater.state.store import MemoryStore, add, read, split
from lowwater.stream.element import END_OF_TIME, Punctuation

STEPS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 20), max_size=8),  # times of new rows, from the limit on
        st.integers(0, 6),  # by how much the mark moves
        st.integers(0, 9),  # by how much the limit moves
        st.booleans(),  # saved and restored
    ),
    max_size=16,
)


@given(STEPS, st.integers(1, 4), st.integers(1, 20), st.integers(1, 5), st.sampled_from([1, 4, 64]))
def test_a_row_leaves_once_not_before_it_may_and_not_after_its_bound(
    steps: Any, every: int, bound: int, width: int, pieces: int
) -> None:
    """
    freed by mark m            must have left
          |-------- bound ---------|
    """
    with mock.patch.object(gradual, "PIECES", pieces):
        store, slicing = MemoryStore(), Slicing(width)

        def built() -> GradualRelease:
            flush = lw.slow(every, within=1)
            return GradualRelease(store, "rows", pl.col("ts"), slicing, flush, bound)

        release, mark, limit, came, left = built(), 0, 0, [], []
        freed: list[tuple[int, int]] = []  # marks, and the limits they set
        for times, moved, further, saved in steps:
            rows = pl.DataFrame({"ts": [limit + each for each in times]}, schema={"ts": pl.Int64})
            came += rows["ts"].to_list()
            for slice_, part in split(rows, pl.col("ts") // width):
                add(store, "rows", slice_, part)
            release.add_rows(rows.height)
            mark, limit = mark + moved, limit + further
            release.free(mark, limit)
            freed.append((mark, limit))
            if saved:
                state = release.snapshot()
                release = built()
                release.restore(state)
            gone = release.take()
            left += [] if gone is None else gone["ts"].to_list()
            due = max((high for at, high in freed if at + bound <= mark), default=-1)
            held = read(store, "rows")
            waiting = [] if held is None else held["ts"].to_list()
            assert sorted(left + waiting) == sorted(came)
            assert all(each < limit for each in left)
            assert all(each >= max(due, release.left) for each in waiting)
            assert release.pending == any(each < limit for each in waiting)
        release.free(END_OF_TIME, END_OF_TIME)
        gone = release.take()
        left += [] if gone is None else gone["ts"].to_list()
        assert sorted(left) == sorted(came)
        assert store.rows == 0


ROWS, WINDOW = 6_000, 60_000
"""Rows of a minute, in milliseconds."""


PACES = {"rows": lw.slow(1, within="1 minute"), "marks": lw.slow(10**9, within="1 minute")}
"""Answers leave as rows come in, or as the mark moves on."""


def sizes(query: Stream, step: int) -> Sequence[int]:
    """The sizes of the answers that leave at once, for two minutes of rows and a mark every
    ``step`` milliseconds."""
    operator = compile_plan(query._node).kernels[-1]
    kernel = operator.build(MemoryStore(), ALONE)
    times = [at * WINDOW // ROWS for at in range(2 * ROWS + 100)]
    found = []
    for at in range(0, len(times), 100):
        chunk = pl.DataFrame({"ts": times[at : at + 100], "k": range(at, at + 100)})
        elements = list(kernel.on_chunk(0, chunk))
        for port in range(kernel.ports):
            mark = Punctuation.linear("ts", times[at] // step * step)
            elements += kernel.on_punctuation(port, mark)
        found += [each.height for each in elements if isinstance(each, pl.DataFrame)]
    return found


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("kind", ["left", "anti", "sessions"])
def test_a_burst_of_a_minute_leaves_in_sixty_four_pieces(kind: Any, pace: str) -> None:
    empty = pl.DataFrame(schema={"ts": pl.Int64, "k": pl.Int64})
    a, b = (lw.stream(empty, name=name, time="ts", unit="ms") for name in "ab")

    def query(**flush: Any) -> Stream:
        if kind == "sessions":
            return a.session("1 second", **flush).group_by("k").agg(n="count(*)")
        return a.join(b, on="k", within=lw.same("1 minute"), how=kind, **flush)

    at_once = sizes(query(), WINDOW)
    slowly = sizes(query(flush=PACES[pace]), WINDOW if pace == "rows" else 1)
    assert max(at_once) > ROWS * 9 // 10
    assert max(slowly) <= -(-ROWS // 64) + 100, "a piece, and the rows of a step"
    assert sum(slowly) > ROWS * 9 // 10
