"""How often a key updates, as it is measured."""

from __future__ import annotations

from random import Random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.claims.updates_runs import at_random, run_queue
from lowwater.updates.keys import RECENT, KeyCell


@given(st.integers(0, 10_000))
def test_gaps_are_averaged_however_many_updates_come_at_once(seed: int) -> None:
    chance = Random(seed)
    times = sorted(chance.randrange(1_000) for _ in range(chance.randint(1, RECENT)))
    begun = times[0] - chance.choice([0, 7])
    cell = KeyCell((), 1.0, 0)
    at = 0
    while at < len(times):
        count = chance.randint(1, len(times) - at)
        cell.measure_gaps(times[at], times[at + count - 1], count, begun)
        cell.account.arrived(times[at], count)
        at += count
    gaps = len(times) - (begun == times[0])
    expected = (times[-1] - begun) / gaps if gaps else None
    assert cell.gap == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("schedule", ["linecutting", "rare-first", "auto"])
def test_what_is_shown_does_not_depend_on_where_time_begins(schedule: str) -> None:
    came = at_random([1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.02, 0.02], 60, 1)
    later = came.with_columns(pl.col("arrived") + 1_000)
    shown = [run_queue(each, schedule, 0.7).shown["n"].to_list() for each in (came, later)]  # type: ignore[arg-type]
    assert shown[0] == shown[1]
