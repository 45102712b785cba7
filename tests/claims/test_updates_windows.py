"""The claims of windows of update streams: traces, sizes of windows, and orders of keys."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest

from lowwater.claims import registry, updates_traces, updates_windows
from lowwater.claims.updates_runs import Way
from lowwater.claims.updates_traces import BY_HAND, derive, observe
from lowwater.claims.updates_windows import ALL, ORDERS, OWN, Rows, WindowRuns, drawn, run_windows
from tests.support.plots import readable

SMALL = WindowRuns((2, 4, 8), 80, (2,), 60, (1,))


def test_the_claims_are_found_by_name() -> None:
    ids = ["up-f12", "UP-F13", "UP-F14"]
    assert [claim.id for claim in registry.find(ids)] == [name.upper() for name in ids]


# ---- traces --------------------------------------------------------------------------------


def test_the_traces_are_exact() -> None:
    outcome = updates_traces.run(True)
    assert outcome.holds, outcome.ours
    assert "EAGER: window 1 at 1, the key waits from 2, shown at 7" in outcome.ours
    assert "staleness drops to 3, then 9 → 3 every 6" in outcome.ours
    readable("UP-F12", outcome)


@pytest.mark.parametrize("way", BY_HAND)
def test_every_row_of_a_window_is_worked_on_once_and_in_order(way: Way) -> None:
    found = observe(way)
    assert found == derive(way)[: len(found)]
    for each in found:
        assert [tick for tick, _ in each.rows] == list(range(max(each.window, 1), each.window + 3))


@pytest.mark.parametrize(("column", "value"), [("shown_at", 8), ("exact", False)])
def test_another_trace_does_not_hold(column: str, value: object) -> None:
    points = updates_traces.run(True).table
    here = (pl.col("queue") == "eager") & (pl.col("window") == 1)
    off = pl.when(here).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
    outcome = updates_traces.traces_outcome(points.with_columns(off))
    assert not outcome.holds
    assert "DOES NOT HOLD: EAGER" in outcome.ours


# ---- one key -------------------------------------------------------------------------------


def test_windows_are_complete_when_what_completes_them_came() -> None:
    rows = Rows(np.array([0, 0, 1, 3]), np.array([7, 8, 8, 7]))
    starts, came = rows.complete(7, 2, 1)
    assert starts.tolist() == [-1, 0]  # [2, 4) and [3, 5) are not over
    assert came.tolist() == [3.0, 4.0]
    own, when = Rows(rows.ticks, rows.keys, alone=True).complete(7, 2, 1)
    assert (own.tolist(), when.tolist()) == ([-1, 0], [4.0, 4.0])
    strict = Rows(np.arange(3), np.zeros(3, int), strict=True).complete(0, 2, 2)
    assert [each.tolist() for each in strict] == [[0], [2.0]]


@pytest.mark.parametrize(
    ("way", "staleness"), [("lazy", 4 / 2), ("eager", 1 / 8), ("append", 1 / 8)]
)
def test_staleness_of_tumbling_windows_is_what_arithmetic_says(way: Way, staleness: float) -> None:
    """A window of 4 rows is worked on for 4 s after it closed, or for 1 s."""
    rows = Rows(np.arange(0, 401), np.zeros(401, np.int64), strict=True)
    assert run_windows(rows, way, 4, 4, 1.0).staleness == pytest.approx(staleness, rel=0.02)


@cache
def sizes() -> pl.DataFrame:
    return updates_windows.over_size(SMALL)


def test_windows_worked_on_as_they_come_are_freshest() -> None:
    outcome = updates_windows.size_outcome(sizes())
    assert outcome.holds, outcome.ours
    readable("UP-F13", outcome)


@pytest.mark.parametrize(
    ("windows", "queue", "values", "why"),
    [
        ("tumbling", "lazy", [1.0, 1.1, 4.0], "LAZY does not grow linearly"),
        ("tumbling", "eager", [0.3, 0.3, 0.3], "EAGER does not fall"),
        ("slide 1", "eager", [90.0, 1.0, 1.0], "another order at size 2"),
        ("slide 1", "shedding", [5.0, 5.0, 999.0], "another order at size 8"),
    ],
)
def test_other_sizes_do_not_hold(windows: str, queue: str, values: list[float], why: str) -> None:
    here = (pl.col("windows") == windows) & (pl.col("queue") == queue)
    other = pl.DataFrame({"size_ticks": SMALL.sizes, "other": values})
    off = pl.when(here).then("other").otherwise("application_seconds").alias("application_seconds")
    points = sizes().join(other, on="size_ticks", maintain_order="left").with_columns(off)
    outcome = updates_windows.size_outcome(points)
    assert not outcome.holds
    assert why in outcome.ours


# ---- ten keys ------------------------------------------------------------------------------


def test_keys_come_in_turn_or_as_they_are_drawn() -> None:
    turns = drawn(None, 5, 1, True)
    assert turns.keys.tolist() == list(range(10)) * 5
    assert turns.ticks[[0, 9, 10, 49]].tolist() == [0, 0, 1, 4]
    counts = np.bincount(drawn(0.9, 10_000, 1, True).keys)
    assert counts[0] / counts[9] == pytest.approx(10**0.9, rel=0.1)


def test_gaps_make_eager_worse_only_where_own_rows_end_windows() -> None:
    gaps, turns = drawn(0.0, 60, 1, alone=True), drawn(None, 60, 1, alone=True)
    together = drawn(0.0, 60, 1, alone=False)
    ratio = {
        name: run_windows(rows, "eager", 2, 1, 1.0).staleness
        / run_windows(rows, "lazy", 2, 1, 1.0).staleness
        for name, rows in (("gaps", gaps), ("turns", turns), ("together", together))
    }
    assert ratio["gaps"] > 1 > max(ratio["turns"], ratio["together"])


def orders(**ratios: float) -> pl.DataFrame:
    rows = [
        {"order": order, "over_by": ended_by, "size_ticks": 2, "ratio": ratio}
        for (order, ratio) in zip(ORDERS, ratios.values(), strict=True)
        for ended_by in (OWN, ALL)
    ]
    return pl.DataFrame(rows)


def test_the_side_of_one_is_judged() -> None:
    held = updates_windows.orders_outcome(orders(turns=0.5, even=1.5, half=1.6, skewed=1.2))
    assert held.holds
    readable("UP-F14", held)
    for ratios, why in (
        ((1.1, 1.5, 1.6, 1.2), "in turn: EAGER is worse at sizes [2]"),
        ((0.5, 1.5, 1.6, 0.9), "Zipf 0.9: EAGER is better at sizes [2]"),
    ):
        names = ("turns", "even", "half", "skewed")
        outcome = updates_windows.orders_outcome(orders(**dict(zip(names, ratios, strict=True))))
        assert not outcome.holds
        assert why in outcome.ours
