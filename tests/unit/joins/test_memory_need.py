"""The memory a join needs, and the results to be expected with less."""

from __future__ import annotations

import random
import warnings
from math import ceil
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.joins.oblivious.memory_manager import ACCURACY_WITHIN
from lowwater.joins.oblivious.memory_model import FITS, InputTraits, MemoryNeeds
from lowwater.joins.oblivious.memory_need import UNIFORM, JoinNeed
from lowwater.joins.oblivious.options import RELIEF_MODES
from tests.unit.running import LONG

LAGGING = MemoryNeeds.of([InputTraits(50, 200, 2), InputTraits(50, 100, 2, delay=10)])


def need(model: MemoryNeeds = LAGGING, **given: Any) -> JoinNeed:
    return JoinNeed(model, (10.0, 20.0), given.pop("modes", RELIEF_MODES), 0.9, **given)


def test_the_need_is_that_of_the_model_in_bytes() -> None:
    """Eq. 7 and 8: 200 + 100 + 500 rows of the first input, max(1, 100 + 200 - 500) of the
    other."""
    assert need().full == ceil((800 * 10 + 1 * 20) / FITS)
    assert need().sparing == "dbf"
    assert need().least == need().of("dbf") < need().of("hybrid") < need().full
    assert need(modes=("msf",)).full == need(modes=("msf",)).least == need().of("msf")
    assert need(most=100).full == 100


def test_measured_displacements_need_less_than_bounds() -> None:
    modes = ("plain",)
    measured = need(shapes=((0.0, 0.0, 0.1, 1.0), UNIFORM), modes=modes)
    even = need(shapes=(UNIFORM, UNIFORM), modes=modes)
    assert measured.least != even.least
    assert max(measured.least, even.least) < need(modes=modes).least
    assert measured.expected(measured.least) == pytest.approx(0.9)


@given(
    st.lists(st.integers(0, 400), min_size=2, max_size=4),
    st.integers(0, 20),
    st.sampled_from([(mode,) for mode in RELIEF_MODES] + [RELIEF_MODES]),
    st.booleans(),
)
def test_more_memory_finds_no_less(
    disorder: list[int], delay: int, modes: Any, unique: bool
) -> None:
    inputs = [InputTraits(40, each, 1, delay * at) for at, each in enumerate(disorder)]
    widths = (16.0,) * len(inputs)
    found = JoinNeed(MemoryNeeds.of(inputs), widths, modes, 0.99, unique=unique)
    shares = [found.expected(found.full * part // 8) for part in range(9)]
    assert shares == sorted(shares)
    assert shares[-1] == 0.99
    assert all(0 <= each <= 0.99 for each in shares)


def displaced(seed: int, rows: int = 3_000, places: int = 300) -> pl.DataFrame:
    chance = random.Random(seed)
    order = sorted(range(rows), key=lambda at: at + chance.uniform(0, places))
    return pl.DataFrame({"epoch": order, f"v{seed}": order, "at": [n / 100 for n in range(rows)]})


@pytest.mark.parametrize("strategy", ["plain", "msf"])
def test_the_expectation_is_near_what_a_join_finds(strategy: Any) -> None:
    """Rows are displaced by up to 300 places, evenly, as an expectation without a measurement
    assumes; the join has 3 kB where rows take some 5 kB."""
    streams = [
        lw.stream(
            lw.replay(displaced(seed), "at"),
            name=f"s{seed}",
            time="epoch",
            progress=lw.unpromised(disorder=300, multiplicity=1, rate=100.0),
        )
        for seed in (1, 2)
    ]
    query = lw.join(streams, on="epoch", strategy=strategy)
    expected, found = [0.0], [0]
    started: list[lw.Run] = []

    def look(rows: Any) -> None:
        found[0] += rows.num_rows
        readings = started[0].metrics().operators[-1].readings
        expected[0] = readings.get(ACCURACY_WITHIN, expected[0])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.StreamWarning)
        started.append(query.run(memory=3_000, tick="200 ms", sink=look))
        assert started[0].await_termination(LONG)
    share = found[0] / 3_000
    assert 0.3 < share < 0.9
    assert expected[0] == pytest.approx(share, abs=0.1)
