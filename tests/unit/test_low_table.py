"""A low-level table of fixed size gives the same output for the same input, in every run."""

from __future__ import annotations

import random

import polars as pl
import pytest

import lowwater as lw
from tests.support.paced_run import PacedRun

FLUSHES = [None, lw.slow(2, 2), lw.lazy(2)]


@pytest.mark.parametrize("flush", FLUSHES, ids=["at once", "slow", "lazy"])
@pytest.mark.parametrize("seed", range(8))
def test_partials_leave_alike_in_every_run(flush: lw.Slow | lw.Lazy | None, seed: int) -> None:
    chance = random.Random(seed)
    rows = [(at // 3, chance.randint(0, 9), chance.choice("abcdef")) for at in range(240)]
    log = pl.DataFrame(rows, schema=["ts", "k", "s"], orient="row")
    stream = lw.stream(lw.replay(log), name="a", time="ts", jump=None)
    windows = stream.window(8, slide=3, flush=flush, table=3).group_by("k", "s")
    query = windows.agg(n="count(*)", first="first(k)")
    runs = [PacedRun(query, seed, rows=30) for _ in range(4)]
    assert runs[0].left
    assert all(each.left == runs[0].left for each in runs)
    assert all(each.arcs == runs[0].arcs for each in runs)
