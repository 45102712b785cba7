"""Who cuts the line: keys that are slow, and only where others are not."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.claims.updates_runs import at_random, run_queue, updates
from lowwater.updates.key_lines import Cutting, Linecutting, RareFirst
from lowwater.updates.options import Schedule
from tests.unit.updates.test_worth import Someone, order

SCHEDULES: tuple[Schedule, Schedule] = ("in-place", "rare-first")


def test_cutting_does_no_harm_where_all_keys_update_equally_often() -> None:
    """By the inequality of the paper alone, half of all updates would cut at load 2, and what waits
    would be nearly half as stale again."""
    came = at_random([0.2] * 10, 200, 1)
    in_place, cutting = (run_queue(came, each, 1.0).averages()[1] for each in SCHEDULES)
    assert cutting == pytest.approx(in_place, rel=0.2)


def test_a_key_cuts_if_its_rate_is_below_that_of_the_line_and_no_other_does() -> None:
    """The inequality of the paper: the gap of the key above the cost times the keys that wait."""
    line: Linecutting[Someone] = Linecutting(lambda: 10.0)
    line.arrived(Someone(1, 0, gap=None))  # no rate is known
    line.arrived(Someone(2, 0, gap=20))  # two keys wait with it: 20 is not above 10 * 2
    line.arrived(Someone(3, 0, gap=30.1))  # above 10 * 3
    line.arrived(Someone(4, 0, gap=40))
    line.arrived(Someone(5, 0, gap=50.1))
    assert order(line) == [3, 5, 1, 2, 4]


def test_a_waiting_key_may_cut_by_a_later_update_and_a_cutter_keeps_its_place() -> None:
    line: Linecutting[Someone] = Linecutting(lambda: 10.0)
    keys = [Someone(name, 0, gap=None) for name in range(3)]
    for key in keys:
        line.arrived(key)
    keys[2].gap = 30.1
    line.arrived(keys[2])
    keys[1].gap = 31.0
    line.arrived(keys[1])
    keys[2].gap = 1.0  # fast again
    line.arrived(keys[2])
    assert order(line) == [2, 1, 0]


def test_the_paper_lets_a_key_that_never_was_seen_wait_and_rare_first_lets_it_cut() -> None:
    came = updates(np.array([0.0, 0.1, 0.2, 100.0, 100.1, 100.2]), np.array([0, 1, 2, 0, 1, 3]))
    shown = {
        rule: run_queue(came, rule, 1.0).shown["key"].to_list()[3:]
        for rule in ("linecutting", "rare-first")
    }
    assert shown == {"linecutting": [0, 1, 3], "rare-first": [0, 3, 1]}


def test_a_rare_key_cuts_and_a_fast_one_does_not() -> None:
    line: RareFirst[Someone] = RareFirst(lambda: 10.0, lambda: 0)
    for name in range(1, 4):
        line.arrived(Someone(name, 0, gap=20))
    line.arrived(Someone(4, 0, gap=100))
    line.arrived(Someone(5, 0, gap=20))
    assert order(line) == [4, 1, 2, 3, 5]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Linecutting[Someone](lambda: 10.0),
        lambda: RareFirst[Someone](lambda: 10.0, lambda: 100),
    ],
    ids=["linecutting", "rare-first"],
)
@given(st.integers(0, 10_000))
def test_a_line_goes_on_where_it_was_saved(make: Callable[[], Cutting[Someone]], seed: int) -> None:
    chance = Random(seed)
    keys = [Someone(at, at, chance.choice([None, 5.0, 50.0, 500.0])) for at in range(12)]
    lines: list[Cutting[Someone]] = [make(), make()]
    for key in keys[:6]:
        lines[0].arrived(key)
    lines[1].restore(lines[0].saved(), {key.key: key for key in keys})
    for line in lines:
        for key in keys[6:]:
            line.arrived(key)
    assert order(lines[0]) == order(lines[1])
