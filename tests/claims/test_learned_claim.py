"""Learned progress is as complete as it should be, and sooner than the best fixed slack."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lowwater.claims import learned, registry
from lowwater.claims.learned import Series, made_up
from lowwater.progress.contract import Ordered, Within
from tests.support.plots import readable


def test_the_claim_holds_on_streams_that_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOWWATER_DATA", raising=False)
    (claim,) = registry.find(["oop-learned"])
    outcome = claim.run(True)
    assert outcome.holds, outcome.ours
    readable("OOP-LEARNED", outcome)
    assert set(outcome.table["part"]) == {""}
    assert (outcome.table["complete"] - outcome.table["target"]).abs().max() <= learned.NEAR


def test_streams_are_made_up_alike_each_time_and_in_order_of_arrival() -> None:
    for one, two in zip(made_up(True), made_up(True), strict=True):
        assert (one.times == two.times).all()
        assert one.arrived is not None
        assert (np.diff(one.arrived) >= 0).all()
        assert (np.diff(one.times) < 0).any()


def test_a_trace_says_how_long_answers_wait_and_what_is_held_for_them() -> None:
    series = Series("made up", "", np.array([0, 4, 12, 9, 21, 30, 40]), 1, 10, np.arange(7) * 100)
    at_once = learned.trace(series, Ordered())
    assert at_once.complete == 6 / 7
    patient = learned.trace(series, Within(3))
    assert patient.complete == 1
    assert patient.delay > at_once.delay
    assert patient.waited is not None
    assert at_once.waited == 0 < patient.waited
    assert patient.held > at_once.held


def test_the_smallest_slack_is_the_least_that_keeps_every_channel_as_complete() -> None:
    series = Series(
        "made up",
        "",
        np.array([10, 0, 20, 14, 30, 21]),
        1,
        10,
        channels=np.array([0, 0, 1, 1, 0, 1]),
    )
    met = learned.trace(series, Within(10)).met
    assert learned.smallest_slack(series, met) == 10
    for slack in (5, 6, 9):
        met = learned.trace(series, Within(slack)).met
        assert learned.smallest_slack(series, met) <= slack


def test_parts_of_a_stream_are_judged_together() -> None:
    line = {"stream": "s", "rows": 5, "target": 0.99, "complete": 0.99}
    table = pl.DataFrame(
        [
            {**line, "part": "a", "delay_seconds": 4.0, "fixed_delay_seconds": 5.0},
            {**line, "part": "b", "delay_seconds": 3.0, "fixed_delay_seconds": 2.5},
        ]
    )
    whole = learned.judged(table).row(0, named=True)
    assert (whole["parts"], whole["rows"], whole["holds"]) == (2, 10, True)
    slower = table.with_columns(delay_seconds=pl.col("delay_seconds") * 2)
    assert not learned.judged(slower)["holds"].any()
    looser = table.with_columns(complete=pl.col("complete") - 0.02)
    assert not learned.judged(looser)["holds"].any()
