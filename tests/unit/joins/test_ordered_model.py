"""The formulas of ordered joins, against sums written out and figures the paper names."""

from __future__ import annotations

from math import inf

import pytest

from lowwater.joins.ordered.model import BOUND, OrderCosts, switching_cost

SETTINGS = [
    OrderCosts.of_two(cost, window, (slow, slow * times))
    for cost in (1e-6, 1e-4, 5e-4)
    for window in (1.0, 60.0)
    for slow in (0.01, 1.0, 3.0)
    for times in (1, 2, 10)
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_totals_are_the_sums_of_the_rows_that_wait(setting: OrderCosts) -> None:
    """Row k of n came k - 1 gaps after the first, and is the k-th to be joined."""
    n, slow, fast = round(setting.waiting), setting.slow_rate, setting.fast_rate
    held = [1 / slow - (k - 1) / fast for k in range(1, n + 1)]
    joined = [wait + k * setting.work for k, wait in enumerate(held, 1)]
    assert setting.filter_order_total == pytest.approx(sum(held))
    assert setting.sync_filter_total == pytest.approx(sum(joined))
    assert setting.filter_order == pytest.approx(sum(held) / n)
    assert setting.sync_filter == pytest.approx(sum(joined) / n)


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_gain_follows_from_the_load_alone(setting: OrderCosts) -> None:
    assert setting.measured_gain == pytest.approx(setting.gain)
    assert setting.load == pytest.approx(
        setting.cost * setting.windows[0] * setting.slow_rate * setting.fast_rate
    )
    assert (setting.gain < BOUND) == setting.keeps_up


def test_the_setting_of_the_experiment() -> None:
    """λ 1 and 10 a second, a window of a minute, half a millisecond: the load is alpha."""
    setting = OrderCosts.of_two(0.0005, 60, (10, 1))
    assert setting.load == pytest.approx(0.3)
    assert setting.gain == pytest.approx(0.3 / 1.3)
    assert setting.filter_order == pytest.approx(0.55)
    assert setting.sync_filter == pytest.approx(0.55 * 1.3)
    assert switching_cost(0.3, (60, 60), (1, 10)) == pytest.approx(0.0005)


def test_rows_of_the_fast_input_meet_what_is_kept_of_the_slow_one() -> None:
    """So with two windows it is the slow input's that counts."""
    assert OrderCosts(0.001, (30, 7), (1, 10)).load == pytest.approx(0.001 * 30 * 1 * 10)
    assert OrderCosts(0.001, (30, 7), (10, 1)).load == pytest.approx(0.001 * 7 * 1 * 10)


def test_more_inputs_are_one_slow_one_and_the_others_together() -> None:
    setting = OrderCosts(0.001, (1, 2, 3), (4, 1, 2))
    assert (setting.slow, setting.slow_rate, setting.fast_rate) == (1, 1, 6)
    kept = [4, 2, 6]
    assert setting.load == pytest.approx(
        0.001 * (4 * (kept[1] + kept[2]) + 2 * (kept[0] + kept[1]))
    )
    assert setting.work * setting.fast_rate == pytest.approx(setting.load)


def test_joins_that_keep_no_rows_never_gain() -> None:
    assert switching_cost(0.3, (0, 0), (1, 10)) == inf
    assert OrderCosts(1.0, (0, 0), (1, 10)).gain == 0


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_rows_that_wait_are_those_come_since_the_last_slow_row(setting: OrderCosts) -> None:
    """After the k-th of n fast rows k wait, until the next one comes."""
    n = round(setting.waiting)
    assert setting.mean_waiting == pytest.approx(sum(range(1, n + 1)) / n)
