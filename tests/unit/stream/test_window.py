"""Window arithmetic against brute force, also before the epoch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.errors import OptionError
from lowwater.stream.window import WindowSpec

specs = st.builds(WindowSpec, st.integers(1, 30), st.integers(1, 30))
ticks = st.integers(-200, 200)


def pane_of(spec: WindowSpec, tick: int) -> int:
    """The start of the pane that a tick lies in."""
    return tick // spec.pane * spec.pane


def starts_containing(spec: WindowSpec, tick: int) -> list[int]:
    first = (tick - spec.range) // spec.slide * spec.slide
    every = range(first - spec.slide, tick + spec.slide + 1, spec.slide)
    return [start for start in every if start <= tick < start + spec.range]


@given(specs, ticks)
def test_starts_covering_a_pane_are_the_windows_that_contain_it(spec: WindowSpec, at: int) -> None:
    pane = pane_of(spec, at)
    assert list(spec.starts_covering(pane)) == starts_containing(spec, at)


@given(specs, ticks)
def test_all_ticks_of_a_pane_lie_in_the_same_windows(spec: WindowSpec, at: int) -> None:
    pane = pane_of(spec, at)
    assert pane <= at < pane + spec.pane
    expected = starts_containing(spec, at)
    for tick in range(pane, pane + spec.pane):
        assert starts_containing(spec, tick) == expected


@given(specs, ticks)
def test_first_open_is_the_earliest_window_a_row_at_the_mark_can_change(
    spec: WindowSpec, mark: int
) -> None:
    first = spec.first_open(mark)
    assert first % spec.slide == 0
    assert first + spec.range > mark
    assert first - spec.slide + spec.range <= mark


@given(specs, ticks, ticks)
def test_first_open_is_monotone(spec: WindowSpec, one: int, two: int) -> None:
    low, high = sorted((one, two))
    assert spec.first_open(low) <= spec.first_open(high)


@given(st.integers(1, 30), ticks)
def test_a_tumbling_window_covers_each_tick_once(length: int, at: int) -> None:
    spec = WindowSpec(length, length)
    assert spec.tumbling
    assert list(spec.starts_covering(pane_of(spec, at))) == [at // length * length]


def test_a_slide_beyond_the_range_leaves_gaps() -> None:
    # windows   [0 . . )          [10 . . )
    # ticks      0 1 2 3 4 ... 9   10
    spec = WindowSpec(3, 10)
    covered = [t for t in range(-10, 11) if spec.starts_covering(pane_of(spec, t))]
    assert covered == [-10, -9, -8, 0, 1, 2, 10]


@pytest.mark.parametrize(("length", "slide"), [(0, 1), (-1, 1)])
def test_a_window_of_no_length_is_refused(length: int, slide: int) -> None:
    with pytest.raises(OptionError, match="a window must be longer than zero"):
        WindowSpec(length, slide)


@pytest.mark.parametrize("slide", [0, -1])
def test_a_window_that_does_not_move_is_refused(slide: int) -> None:
    with pytest.raises(OptionError, match="slide must be longer than zero"):
        WindowSpec(1, slide)
