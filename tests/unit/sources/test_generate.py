"""Generated streams: rates, disorder, skew, phases and keys, all from a seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from tests.unit.running import finished


def seconds(frame: pl.DataFrame) -> Any:
    return frame["ts"].to_physical().to_numpy() / 1e6


def test_the_same_seed_gives_the_same_rows() -> None:
    def make(seed: int) -> lw.Workload:
        return lw.Workload(
            rate=100, seconds=20, seed=seed, late_share=0.1, late_by=2, scramble=5, keys=9, zipf=1
        )

    assert make(3).table().equals(make(3).table())
    assert not make(3).table().equals(make(4).table())


@pytest.mark.parametrize("rate", [1, 50, 1000])
def test_poisson_arrivals_keep_the_rate_within_five_deviations(rate: int) -> None:
    frame = lw.Workload(rate=rate, seconds=30, seed=1).table()
    assert abs(frame.height - rate * 30) <= 5 * (rate * 30) ** 0.5
    assert seconds(frame).min() > 0
    assert seconds(frame).max() < 30


def test_poisson_gaps_are_exponential() -> None:
    gaps = np.diff(seconds(lw.Workload(rate=100, seconds=200, seed=2).table()))
    assert gaps.mean() == pytest.approx(0.01, rel=0.05)
    assert gaps.std() == pytest.approx(0.01, rel=0.05)


def test_regular_arrivals_are_evenly_spaced() -> None:
    gaps = np.diff(seconds(lw.Workload(rate=100, seconds=5, process="regular").table()))
    assert np.allclose(gaps, 0.01, atol=2e-6)


@pytest.mark.parametrize("process", ["poisson", "regular"])
def test_phases_multiply_the_rate(process: str) -> None:
    frame = lw.Workload(
        rate=100, seconds=60, seed=5, process=process, phases=[(20, 30, 4.0), (40, 50, 0.0)]
    ).table()
    times = seconds(frame)

    def between(first: float, last: float) -> int:
        return int(((times >= first) & (times < last)).sum())

    assert between(0, 20) == pytest.approx(2000, rel=0.12)
    assert between(20, 30) == pytest.approx(4000, rel=0.12)
    assert between(40, 50) <= 1
    assert between(50, 60) == pytest.approx(1000, rel=0.15)


def test_skew_is_the_delay_between_time_and_arrival() -> None:
    frame = lw.Workload(rate=50, seconds=10, skew=1.5).table()
    assert np.allclose(frame["arrived"].to_numpy() - seconds(frame), 1.5, atol=2e-6)


def test_late_rows_are_later_by_at_most_what_was_asked() -> None:
    frame = lw.Workload(rate=500, seconds=20, seed=6, late_share=0.2, late_by=3.0).table()
    delays = frame["arrived"].to_numpy() - seconds(frame)
    assert delays.min() > -2e-6
    assert delays.max() <= 3.0 + 2e-6
    assert (delays > 1e-5).mean() == pytest.approx(0.2, abs=0.03)


@given(st.integers(0, 40), st.integers(0, 1000))
def test_a_scrambled_row_comes_at_most_so_many_rows_after_a_newer_one(
    places: int, seed: int
) -> None:
    mixed = lw.Workload(rate=100, seconds=3, seed=seed, process="regular", scramble=places)
    times = mixed.table()["ts"].to_physical().to_numpy()
    newer_before = [np.flatnonzero(times[:at] > time) for at, time in enumerate(times)]
    reach = max(int(at - early[0]) if len(early) else 0 for at, early in enumerate(newer_before))
    assert reach <= places
    assert places < 5 or reach > 0


@pytest.mark.parametrize("places", [1, 5, 50])
def test_a_scrambled_stream_keeps_the_promise_of_as_many_rows(places: int) -> None:
    source = lw.Workload(rate=500, seconds=4, seed=1, scramble=places).replay()
    run = finished(lw.stream(source, time="ts", progress=lw.within_rows(places)))
    assert run.metrics().late_rows == 0


def test_arrivals_never_go_back_whatever_the_disorder() -> None:
    frame = lw.Workload(rate=300, seconds=10, late_share=0.5, late_by=5, scramble=30).table()
    assert frame["arrived"].is_sorted()
    assert not frame["ts"].is_sorted()


def test_multiplicity_repeats_each_time() -> None:
    frame = lw.Workload(rate=100, seconds=10, multiplicity=4, seed=7).table()
    assert set(frame.group_by("ts").len()["len"]) == {4}
    assert frame.height == pytest.approx(1000, rel=0.2)


def test_uniform_keys_are_even_and_zipf_keys_follow_their_law() -> None:
    even = lw.Workload(rate=2000, seconds=10, keys=10, seed=8).table()
    shares = even.group_by("key").len().sort("key")["len"].to_numpy() / even.height
    assert np.allclose(shares, 0.1, atol=0.02)
    skewed = lw.Workload(rate=2000, seconds=10, keys=10, zipf=1.2, seed=8).table()
    weights = 1 / np.arange(1, 11) ** 1.2
    shares = skewed.group_by("key").len().sort("key")["len"].to_numpy() / skewed.height
    assert np.allclose(shares, weights / weights.sum(), atol=0.02)


@pytest.mark.parametrize(
    ("unit", "dtype"), [("s", pl.Int64), ("ms", pl.Datetime("ms")), ("us", pl.Datetime("us"))]
)
def test_the_unit_chooses_the_type_of_the_time(unit: str, dtype: Any) -> None:
    assert lw.Workload(rate=1, seconds=1, unit=unit).table().schema["ts"] == dtype


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rate": 0, "seconds": 1}, "above zero"),
        ({"rate": 1, "seconds": -1}, "above zero"),
        ({"rate": 1, "seconds": 1, "process": "bursty"}, "'poisson' or 'regular', not 'bursty'"),
        ({"rate": 1, "seconds": 1, "unit": "min"}, "unit is 's', 'ms' or 'us', not 'min'"),
        ({"rate": 1, "seconds": 1, "keys": 0}, "at least 1"),
        ({"rate": 1, "seconds": 1, "multiplicity": 0}, "at least 1"),
        ({"rate": 1, "seconds": 1, "scramble": -1}, "scramble at least 0"),
    ],
)
def test_impossible_workloads_are_refused(options: Any, says: str) -> None:
    with pytest.raises(lw.OptionError, match=says):
        lw.Workload(**options)


def test_a_workload_is_a_source() -> None:
    workload = lw.Workload(rate=100, seconds=2, seed=9)
    stream = lw.stream(workload.replay(), time="ts")
    assert stream.collect().num_rows == workload.table().height
