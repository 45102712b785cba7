"""The integral of staleness, where updates that came during work are told of after it."""

from __future__ import annotations

from lowwater.stream.duration import SECOND
from lowwater.updates.staleness import Account


def test_staleness_is_not_counted_twice_while_an_update_is_worked_on() -> None:
    """The second update came at 2 while the first was worked on, from 0 to 3: until 3 what is
    shown is as stale as the first, and from then on as the second."""
    account = Account()
    account.arrived(0)
    account.taken(0)
    account.shown(3 * SECOND)
    account.arrived(2 * SECOND)
    account.taken(3 * SECOND)
    assert account.application.area(3 * SECOND) == 3 * 3 / 2
    assert account.application.area(6 * SECOND) == 3 * 3 / 2 + 3 * (1 + 4) / 2
    assert account.queue.area(6 * SECOND) == 1 / 2


def test_times_before_1970_are_times() -> None:
    account = Account()
    account.arrived(-10 * SECOND)
    assert account.application.area(-8 * SECOND) == 2
