"""Who is next where keys update at different rates."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.updates.key_lines import ROUNDS, InPlace, KeyLine, Worth
from lowwater.updates.options import Key


@dataclass(eq=False)
class Someone:
    name: int
    first: int
    gap: float | None = None
    weight: float = 1.0

    @property
    def key(self) -> Key:
        return (self.name,)


def order(line: KeyLine[Someone]) -> list[int]:
    return [line.next().name for _ in range(len(line))]


def worth(now: int, keys: list[Someone], cost: float = 1e9) -> Worth[Someone]:
    line: Worth[Someone] = Worth(lambda: cost, lambda: now)
    for key in keys:
        line.arrived(key)
    return line


@given(st.integers(0, 10_000))
def test_keys_that_update_equally_often_leave_in_place(seed: int) -> None:
    chance = Random(seed)
    keys = [Someone(at, chance.randrange(100), gap=50) for at in range(12)]
    keys.sort(key=lambda each: each.first)
    line: InPlace[Someone] = InPlace()
    for key in keys:
        line.arrived(key)
    assert order(worth(100, keys)) == order(line)


@pytest.mark.parametrize("gap", [0.1, 3.0, 40.0])
def test_a_key_is_worth_the_price_at_which_it_is_best_served_now(gap: float) -> None:
    """Two keys are worth the same exactly where the same price makes both ages the best ones."""
    ages = np.linspace(0.01, 60, 60_000)
    price = 25.0
    best = [float(ages[np.argmin((ages**2 / 2 + price) / (ages + each))]) for each in (gap, 7.0)]

    def first(earlier: float) -> int:
        keys = [
            Someone(0, round(1e6 * (60 - best[0] - earlier)), gap=1e6 * gap),
            Someone(1, round(1e6 * (60 - best[1])), gap=1e6 * 7.0),
        ]
        return worth(60_000_000, keys).next().name

    assert (first(0.01), first(-0.01)) == (0, 1)


def test_slow_keys_go_first_but_no_key_waits_for_ever() -> None:
    slow = Someone(0, 90, gap=1_000)
    assert order(worth(100, [Someone(1, 80, gap=1), slow])) == [0, 1]
    assert order(worth(100, [Someone(1, 0, gap=1), slow], cost=10)) == [1, 0]


def test_a_gap_counts_as_a_few_rounds_of_the_line() -> None:
    """Two keys that are both slow are served in the order in which they came."""
    keys = [Someone(0, 50, gap=2 * ROUNDS), Someone(1, 51, gap=1e9)]
    assert order(worth(100, keys, cost=1.0)) == [0, 1]
    assert order(worth(100, keys, cost=1e9)) == [1, 0]


def test_a_key_that_counts_more_goes_before_one_that_waits_as_long() -> None:
    keys = [Someone(0, 50, gap=10), Someone(1, 60, gap=10, weight=4)]
    assert order(worth(100, keys)) == [1, 0]


@given(st.integers(0, 10_000))
def test_a_line_goes_on_where_it_was_saved(seed: int) -> None:
    chance = Random(seed)
    keys = [
        Someone(at, at // 2, chance.choice([None, 1.0, 5.0, 500.0]), chance.choice([1.0, 2.0]))
        for at in range(12)
    ]
    line = worth(100, keys)
    line.next()
    again: Worth[Someone] = Worth(lambda: 1e9, lambda: 100)
    again.restore(line.saved(), {key.key: key for key in keys})
    assert [each.name for each in again] == [each.name for each in line]
    assert order(again) == order(line)
