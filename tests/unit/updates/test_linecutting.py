"""Who cuts the line: keys that are slow, and only where others are not."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.claims.updates_runs import at_random, run_queue
from lowwater.updates.key_lines import Linecutting
from lowwater.updates.options import Schedule
from tests.unit.updates.test_worth import Someone, order

SCHEDULES: tuple[Schedule, Schedule] = ("in-place", "linecutting")


def test_cutting_does_no_harm_where_all_keys_update_equally_often() -> None:
    """By the inequality of the paper alone, half of all updates would cut at load 2, and what waits
    would be nearly half as stale again."""
    came = at_random([0.2] * 10, 200, 1)
    in_place, cutting = (run_queue(came, each, 1.0).averages()[1] for each in SCHEDULES)
    assert cutting == pytest.approx(in_place, rel=0.2)


def test_a_slow_key_cuts_and_a_fast_one_does_not() -> None:
    line: Linecutting[Someone] = Linecutting(lambda: 10.0, lambda: 0)
    for name in range(1, 4):
        line.arrived(Someone(name, 0, gap=20))
    line.arrived(Someone(4, 0, gap=100))
    line.arrived(Someone(5, 0, gap=20))
    assert order(line) == [4, 1, 2, 3, 5]


@given(st.integers(0, 10_000))
def test_a_line_goes_on_where_it_was_saved(seed: int) -> None:
    chance = Random(seed)
    keys = [Someone(at, at, chance.choice([None, 5.0, 50.0, 500.0])) for at in range(12)]
    lines = [Linecutting[Someone](lambda: 10.0, lambda: 100) for _ in range(2)]
    for key in keys[:6]:
        lines[0].arrived(key)
    lines[1].restore(lines[0].saved(), {key.key: key for key in keys})
    for line in lines:
        for key in keys[6:]:
            line.arrived(key)
    assert order(lines[0]) == order(lines[1])
