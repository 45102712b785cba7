"""When a mark was reached: worked out from the rows a promise follows."""

from __future__ import annotations

import numpy as np

from lowwater.stream.element import BEGINNING, END_OF_TIME
from lowwater.updates.windows.open_windows import CompletionTimes


def came(progress: CompletionTimes, *rows: tuple[int, int]) -> None:
    ticks, when = (np.array(each) for each in zip(*rows, strict=True))
    progress.add(ticks, when)


def test_a_mark_is_reached_with_the_row_that_reaches_it() -> None:
    progress = CompletionTimes()
    came(progress, (3, 10), (5, 20), (4, 25), (9, 30))
    progress.advance(9, 99)
    assert [progress.when(mark) for mark in (1, 3, 4, 5, 6, 9)] == [10, 10, 20, 20, 30, 30]


def test_the_same_within_a_bound_and_where_rows_say_what_follows() -> None:
    for ahead in (-3, 1):
        progress = CompletionTimes()
        came(progress, (3, 10), (5, 20))
        came(progress, (9, 30))
        progress.advance(9 + ahead, 99)
        assert [progress.when(mark + ahead) for mark in (3, 4, 9)] == [10, 20, 30]


def test_a_promise_without_rows_is_reached_when_it_is_made() -> None:
    progress = CompletionTimes()
    assert progress.mark == BEGINNING
    came(progress, (3, 10))
    progress.advance(3, 11)
    progress.advance(8, 50)
    assert (progress.mark, progress.when(8)) == (8, 50)
    came(progress, (9, 60))
    progress.advance(END_OF_TIME, 70)
    assert progress.when(10) == 70, "the end completes what no row did"


def test_what_is_promised_of_keys_is_reached_with_the_last_row() -> None:
    progress = CompletionTimes()
    came(progress, (3, 10), (5, 20))
    assert progress.last_arrival(99) == 20
    assert progress.last_arrival(99) == 99


def test_rows_behind_those_that_came_before_move_no_mark() -> None:
    progress = CompletionTimes()
    came(progress, (10, 10))
    came(progress, (5, 20), (7, 30))
    progress.advance(10, 99)
    assert [progress.when(mark) for mark in (6, 8, 10)] == [10, 10, 10]


def test_the_last_row_may_be_behind_those_that_came_before() -> None:
    progress = CompletionTimes()
    came(progress, (10, 10))
    assert progress.last_arrival(99) == 10
    came(progress, (5, 20))
    assert progress.last_arrival(99) == 20
    assert progress.last_arrival(99) == 99


def test_it_goes_on_from_what_was_saved() -> None:
    progress, again = CompletionTimes(), CompletionTimes()
    came(progress, (3, 10), (5, 20))
    again.restore(progress.saved())
    for each in (progress, again):
        came(each, (4, 25), (9, 30))
        each.advance(8, 99)
    assert [progress.when(mark) for mark in (2, 4, 8)] == [again.when(mark) for mark in (2, 4, 8)]
