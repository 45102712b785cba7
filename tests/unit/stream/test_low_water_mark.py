"""The low-water mark: minimum of the inputs, never back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lowwater.stream.element import BEGINNING, END_OF_TIME
from lowwater.stream.low_water_mark import LowWaterMark


def test_the_value_is_the_minimum_over_the_inputs() -> None:
    mark = LowWaterMark("ab")
    assert mark.value == BEGINNING
    assert not mark.advance("a", 10)
    assert mark.advance("b", 5)
    assert (mark.value, mark.slowest) == (5, "b")
    assert mark.advance("b", 20)
    assert (mark.value, mark.slowest) == (10, "a")


def test_a_mark_that_goes_back_is_ignored() -> None:
    mark = LowWaterMark("a")
    mark.advance("a", 10)
    assert not mark.advance("a", 3)
    assert not mark.advance("a", 10)
    assert mark.of("a") == mark.value == 10


def test_moving_a_fast_input_does_not_move_the_minimum() -> None:
    mark = LowWaterMark("ab")
    mark.advance("a", 10)
    mark.advance("b", 5)
    assert not mark.advance("a", 11)
    assert mark.value == 5


def test_closing_an_input_lets_the_others_tell() -> None:
    mark = LowWaterMark("ab")
    mark.advance("a", 10)
    assert mark.close("b")
    assert mark.value == 10
    assert mark.close("a")
    assert mark.value == END_OF_TIME


def test_an_input_that_joins_behind_holds_the_mark_but_does_not_pull_it_back() -> None:
    mark = LowWaterMark("a")
    mark.advance("a", 10)
    assert not mark.advance("late", 4)
    assert mark.value == 10
    assert not mark.advance("a", 20)
    assert mark.value == 10
    assert mark.advance("late", 15)
    assert mark.value == 15


def test_the_first_input_to_join_an_empty_mark_sets_it() -> None:
    mark = LowWaterMark()
    assert mark.value == BEGINNING
    assert mark.advance("a", 7)
    assert mark.value == 7


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-20, 20))), st.integers(0, 30))
def test_any_sequence_keeps_the_running_minimum_also_over_a_restore(
    moves: list[tuple[int, int]], cut: int
) -> None:
    mark = LowWaterMark(range(3))
    best = dict.fromkeys(range(3), BEGINNING)
    for at, (source, value) in enumerate(moves):
        if at == cut:
            again = LowWaterMark()
            again.restore(mark.marks(), mark.value)
            mark = again
        before = mark.value
        best[source] = max(best[source], value)
        moved = mark.advance(source, value)
        assert mark.value == min(best.values()) >= before
        assert moved == (mark.value > before)
        assert mark.marks() == best
        assert best[mark.slowest] == mark.value  # type: ignore[index]


def test_the_copy_of_marks_is_a_copy() -> None:
    mark = LowWaterMark("a")
    mark.marks()["a"] = 99
    assert mark.of("a") == BEGINNING
