"""When Adaptive changes over, from what it is told: rates, and what comparing rows took."""

from __future__ import annotations

import copy

import pytest

from lowwater.joins.ordered.strategy import ARRIVALS, ENOUGH, ArrivalRate, ModeChooser, Ordering

SECOND = 1_000_000_000
WINDOW = 60.0


def told(strategy: ModeChooser, begin: int, seconds: int, slow: int, cost: float) -> int:
    """A slow row every so many seconds, ten fast ones a second, and what comparing two takes."""
    for second in range(begin, begin + seconds):
        for tenth in range(10):
            now = second * SECOND + tenth * SECOND // 10
            strategy.arrived(1, 1, now, second)
            strategy.took(round(cost * 60 * SECOND), 60)
        if second % slow == 0:
            strategy.arrived(0, 1, second * SECOND + SECOND // 2, second)
    return begin + seconds


def adaptive(alpha: float = 0.3) -> ModeChooser:
    return ModeChooser(Ordering("adaptive", alpha), (WINDOW, WINDOW), 1)


@pytest.mark.parametrize("order", ["sync-filter", "filter-order"])
def test_a_fixed_strategy_stays(order: str) -> None:
    strategy = ModeChooser(Ordering(order), (WINDOW, WINDOW), 1)  # type: ignore[arg-type]
    told(strategy, 0, 200, 1, 0.01)
    assert strategy.mode == order
    assert strategy.metrics().about == {"strategy": order, "because": "as asked"}


@pytest.mark.parametrize(("cost", "mode"), [(0.0004, "sync-filter"), (0.00055, "filter-order")])
def test_it_changes_over_where_the_load_is_alpha(cost: float, mode: str) -> None:
    """c·|w|·λ1·λ2 = c · 60 · 1 · 10 is 0.3 at half a millisecond."""
    strategy = adaptive()
    told(strategy, 0, 400, 1, cost)
    assert strategy.mode == mode
    assert f"{cost * 600:.2g}"[:3] in strategy.reason
    assert strategy.switches == (mode == "filter-order")


def test_it_goes_back_when_the_load_is_clearly_lower() -> None:
    strategy = adaptive()
    now = told(strategy, 0, 400, 1, 0.0006)
    assert strategy.mode == "filter-order"
    now = told(strategy, now, 400, 1, 0.00045)  # below alpha, but not by much
    assert strategy.mode == "filter-order"
    assert "kept until" in strategy.reason
    told(strategy, now, 400, 1, 0.0002)
    assert strategy.mode == "sync-filter"
    assert strategy.switches == 2


def test_it_goes_back_when_the_slow_input_falls_silent() -> None:
    strategy = adaptive()
    now = told(strategy, 0, 400, 1, 0.0006)
    told(strategy, now, 1_500, 10**9, 0.0006)
    assert strategy.mode == "sync-filter"


def test_alpha_is_the_users() -> None:
    eager, patient = adaptive(0.05), adaptive(0.9)
    for strategy in (eager, patient):
        told(strategy, 0, 400, 1, 0.0005)
    assert (eager.mode, patient.mode) == ("filter-order", "sync-filter")


def test_nothing_is_decided_on_a_few_rows() -> None:
    strategy = adaptive()
    told(strategy, 0, ENOUGH, 1, 1.0)
    assert strategy.mode == "sync-filter"
    assert strategy.reason == "too little seen to decide"


def test_a_rate_goes_by_the_clock_and_else_by_the_rows_own_times() -> None:
    clocked, still = ArrivalRate(1_000), ArrivalRate(1_000)
    for at in range(3 * ARRIVALS):
        clocked.arrived(2, at * SECOND, 0)
        still.arrived(2, 7, at * 500)
    last = 3 * ARRIVALS - 1
    assert clocked.value(last * SECOND, 0) == pytest.approx(2)
    assert still.value(7, last * 500) == pytest.approx(4)
    assert clocked.value((last + ARRIVALS) * SECOND, 0) == pytest.approx(1, rel=0.01)  # fell silent


def test_a_rate_follows_a_change() -> None:
    rate = ArrivalRate(1)
    for at in range(ARRIVALS):
        rate.arrived(1, at * SECOND, 0)
    for at in range(ARRIVALS):
        rate.arrived(1, ARRIVALS * SECOND + at * SECOND // 100, 0)
    assert rate.value(ARRIVALS * SECOND + (ARRIVALS - 1) * SECOND // 100, 0) == pytest.approx(100)


def test_it_goes_on_from_a_snapshot() -> None:
    strategy, again = adaptive(), adaptive()
    now = told(strategy, 0, 300, 1, 0.0006)
    again.restore(copy.deepcopy(strategy.snapshot()))
    for each in (strategy, again):
        told(each, now, 50, 3, 0.0001)
    assert strategy.metrics().about == again.metrics().about
    assert strategy.snapshot() == again.snapshot()
