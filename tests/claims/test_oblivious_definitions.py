"""The definitions of the window-oblivious join, against the same written out pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.claims.oblivious_definitions import (
    displacements,
    lag,
    lags,
    multiplicity,
    scrambling_factor,
    virtual_index,
)

STREAMS = st.lists(st.integers(-5, 12), max_size=20).map(lambda keys: np.array(keys, np.int64))
SOME = STREAMS.filter(len)


def keys(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def places(stream: np.ndarray, at: int) -> set[int]:
    """The virtual index of a row: where it or an equal row is once all are in order."""
    return {n for n, key in enumerate(sorted(stream.tolist()), 1) if key == stream[at]}


# ---- disorder ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "disorder", "most_equal"),
    [
        (keys(), 0, 0),
        (keys(7), 0, 1),
        (keys(1, 2, 5, 9), 0, 1),
        (keys(1, 1, 2, 2), 1, 2),
        (keys(1, 1, 1, 2), 2, 3),
        (keys(2, 1, 3, 4), 1, 1),
        (keys(4, 1, 2, 3), 3, 1),
        (keys(1, 4, 2, 2, 5, 3), 4, 2),
        (keys(4, 3, 2, 1), 3, 1),
    ],
)
def test_disorder_of_small_streams(stream: np.ndarray, disorder: int, most_equal: int) -> None:
    assert scrambling_factor(stream) == disorder
    assert multiplicity(stream) == most_equal


@given(SOME)
def test_disorder_is_the_least_that_satisfies_every_pair(stream: np.ndarray) -> None:
    """Definition 2.2 as it stands: if s.A <= s'.A then PI(s) - k <= PI(s')."""

    def satisfied(k: int) -> bool:
        rows = list(enumerate(stream.tolist(), 1))
        return all(pi - k <= other for pi, key in rows for other, more in rows if key <= more)

    k = scrambling_factor(stream)
    assert satisfied(k)
    assert k == 0 or not satisfied(k - 1)


@given(SOME)
def test_each_row_is_as_far_from_the_first_not_less(stream: np.ndarray) -> None:
    found = displacements(stream)
    for at, key in enumerate(stream):
        assert found[at] == at - next(n for n, other in enumerate(stream) if other >= key)


@given(SOME)
def test_rows_in_order_are_as_disordered_as_they_are_equal(stream: np.ndarray) -> None:
    assert scrambling_factor(np.sort(stream)) == multiplicity(stream) - 1
    assert multiplicity(stream) - 1 <= scrambling_factor(stream)


# ---- places --------------------------------------------------------------------------------


@given(SOME)
def test_places_in_order(stream: np.ndarray) -> None:
    least, greatest = virtual_index(stream)
    for at in range(len(stream)):
        assert set(range(least[at], greatest[at] + 1)) == places(stream, at)


@given(SOME)
def test_no_place_is_further_off_than_the_disorder(stream: np.ndarray) -> None:
    """Theorem 2.1."""
    k, came = scrambling_factor(stream), np.arange(1, len(stream) + 1)
    least, greatest = virtual_index(stream)
    assert (came - least <= k).all()
    assert (greatest - came <= k).all()


# ---- lag -----------------------------------------------------------------------------------


@given(SOME, SOME, st.data())
def test_lag_is_counted_from_the_next_of_kin(
    one: np.ndarray, other: np.ndarray, data: st.DataObject
) -> None:
    """Definition 2.6 as it stands, row by row."""
    came = data.draw(st.integers(0, len(one)))
    other_came = data.draw(st.integers(1, len(other)))
    instead = next(at for at in range(len(other)) if other_came in places(other, at))
    kin = [at for at, key in enumerate(one) if key <= other[instead]]
    last = 0
    if kin:
        next_of_kin = max(kin, key=lambda at: one[at])
        last = max(places(one, next_of_kin))
    assert lag(one, other, came, other_came) == came - last


@given(SOME)
def test_a_stream_is_never_behind_itself_by_more_than_its_equals(stream: np.ndarray) -> None:
    came = np.arange(1, len(stream) + 1)
    own = lags(stream, stream, came, came)
    assert (own <= 0).all()
    assert (own > -multiplicity(stream)).all()


@given(SOME, SOME, st.data())
def test_lag_grows_with_rows_of_the_one_and_falls_with_those_of_the_other(
    one: np.ndarray, other: np.ndarray, data: st.DataObject
) -> None:
    came = data.draw(st.integers(0, len(one) - 1))
    other_came = data.draw(st.integers(0, len(other) - 1))
    here = lag(one, other, came, other_came)
    assert lag(one, other, came + 1, other_came) == here + 1
    assert lag(one, other, came, other_came + 1) <= here


def test_a_stream_is_ahead_by_all_its_rows_until_the_other_begins() -> None:
    assert lag(keys(1, 2, 3), keys(1, 2, 3), 3, 0) == 3
    assert lag(keys(5, 6), keys(1, 2), 2, 2) == 2


def test_streams_in_order_and_unique_lag_as_physical_places_say() -> None:
    """Definition 2.4: PI(s_i) less the PI of the next of kin of s_j."""
    one, other = keys(1, 3, 4, 8, 9), keys(2, 4, 5, 9)
    assert lag(one, other, 4, 2) == 4 - 3
    assert lag(one, other, 4, 3) == 4 - 3
    assert lag(one, other, 1, 4) == 1 - 5
