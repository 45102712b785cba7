"""Answers that leave slowly, of groups with promises of their own: none is lost, told twice or told
after it was promised away."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from lowwater.operators.flush import Lazy
from tests.support.checked_run import CheckedRun
from tests.support.oracle import table_rows

SCHEMA = {"ts": pl.Int64, "k": pl.Int64, "gone": pl.Boolean}
SLOWLY = st.sampled_from([lw.slow(1, within=1), lw.slow(2, within=4), lw.slow(10**9, within=9)])
OPERATORS: dict[str, Callable[[Stream, Any], Any]] = {
    "sessions": lambda s, flush: s.session(3, flush=flush),
    "tumbling windows": lambda s, flush: s.window(3, flush=flush),
    "sliding windows": lambda s, flush: s.window(6, slide=2, flush=flush),
    "windows of two levels": lambda s, flush: s.window(6, slide=2, flush=flush, table=3),
}


def made(seed: int, contract: Any) -> Stream:
    """A stream of few groups, some of which end."""
    chance = random.Random(seed)
    step, back = chance.choice([0.3, 1.0, 3.0]), chance.choice([0, 2, 10])
    ends = chance.choice([0, 0.2])
    rows = [
        (int(at * step) - chance.randint(0, back), chance.choice([0, 0, 1, 2, 3]), gone)
        for at in range(chance.randint(0, 30))
        for gone in [chance.random() < ends]
    ]
    table = pl.DataFrame(rows, SCHEMA, orient="row")
    return lw.stream(
        table, name="a", time="ts", progress=contract, jump=None, groups="k", ended="gone"
    )


@pytest.mark.parametrize("name", OPERATORS)
@given(
    st.data(),
    st.integers(0, 9_999),
    st.sampled_from([lw.ordered(), lw.within(3), lw.within_rows(2)]),
    st.booleans(),
    SLOWLY | st.sampled_from([lw.lazy(within=4), lw.slow(1, 3)]),
)
def test_groups_and_a_whole_stream_that_progress_leave_the_same_answers_slowly(
    name: str, data: Any, seed: int, contract: Any, announced: bool, flush: Any
) -> None:
    if name == "sessions" and (flush.within is None or isinstance(flush, Lazy)):
        flush = lw.slow(2, within=9)
    found = []
    for pace in (flush, None):
        answers = OPERATORS[name](made(seed, contract), pace).group_by("k").agg(n="count(*)")
        query = answers.order_by("window_end")  # it needs a promise on the whole stream, too
        found.append(table_rows(CheckedRun(query, data.draw, announced=announced).results()))
    assert found[0] == found[1]
