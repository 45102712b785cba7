"""Whose window is next: keys that wait, that are worked on, and that keep their turn."""

from __future__ import annotations

import pytest

from lowwater.stream.window import WindowSpec
from lowwater.updates.key_lines import InPlace
from lowwater.updates.windows.scheduler import KeyScheduler
from lowwater.updates.windows.window_keys import KeyState, WindowCell

WINDOW = WindowSpec(3, 1)


def cells(names: str) -> list[WindowCell]:
    return [WindowCell(WINDOW, (name,), 1.0, at) for at, name in enumerate(names)]


def started(names: str) -> tuple[KeyScheduler, list[WindowCell]]:
    """Keys that wait, in this order."""
    found = cells(names)
    keys = KeyScheduler(InPlace())
    for cell in found:
        keys.update(cell)
    return keys, found


def names(keys: KeyScheduler) -> str:
    """The keys that wait, as they are served."""
    found = ""
    while keys.waits:
        cell = keys.commit()
        keys.done(cell)
        found += str(cell.key[0])
    return found


def test_keys_are_served_in_the_order_of_their_line() -> None:
    keys, (a, _, _) = started("abc")
    keys.update(a)
    assert keys.waiting == 3
    assert names(keys) == "abc"
    assert (keys.waits, keys.waiting) == (False, 0)


def test_a_key_waits_and_is_worked_on_at_once() -> None:
    keys, (a, b) = started("ab")
    assert keys.commit() is a
    keys.update(a)
    assert a.states == {KeyState.READY, KeyState.WAIT}
    keys.rest(a)
    assert a.states == {KeyState.IDLE, KeyState.WAIT}
    assert a in keys.il
    assert keys.commit() is b
    keys.done(b)
    assert not keys.waits, "a's older window is not answered yet"
    keys.promote(a)
    assert list(keys.upq) == [a]
    keys.done(a)
    assert a.states == {KeyState.WAIT}
    assert keys.commit() is a


def test_a_turn_that_comes_during_work_is_kept() -> None:
    keys, (a, b) = started("ab")
    for cell in (keys.commit(), keys.commit()):
        keys.update(cell)
    for cell in (a, b):
        keys.rest(cell)
    (late,) = cells("c")
    keys.update(late)
    assert keys.commit() is late, "a and b were before it, and keep their turn"
    keys.done(late)
    keys.update(late)
    keys.done(b)
    keys.done(a)
    assert names(keys) == "abc"


def test_keys_go_on_as_they_stood() -> None:
    keys, (a, b, c) = started("abc")
    keys.update(keys.commit())
    keys.rest(a)
    assert keys.commit() is b
    keys.done(b)
    keys.update(b)
    saved = keys.saved()
    copies = {cell.key: other for cell, other in zip((a, b, c), cells("abc"), strict=True)}
    for cell in (a, b, c):
        copies[cell.key].states = set(cell.states)
    again = KeyScheduler(InPlace())
    again.restore(saved, copies)
    for each, first in ((keys, a), (again, copies["a",])):
        each.done(first)
    assert names(keys) == names(again) == "cab"


def test_what_the_graph_does_not_allow_is_noticed() -> None:
    keys, (a,) = started("a")
    with pytest.raises(AssertionError, match="a key went from"):
        keys._move(a, KeyState.WAIT, KeyState.DONE)
