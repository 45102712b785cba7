"""Update queues: the newest wins, in the order of its key's times, and staleness is what it is."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.stream.duration import SECOND
from lowwater.updates.key_lines import PATIENCE
from lowwater.updates.options import PLAIN, Schedule, Updates
from tests.support.update_run import Happened, Row, UpdateRun, updates_from

SEEDS = st.integers(0, 2**32)
KEYED: list[Schedule] = ["in-place", "fifo", "linecutting", "rare-first", "auto"]
EVERY: list[Schedule] = [*KEYED, "append", "shedding"]
COST = 5


def played(
    seed: int, schedule: Schedule, *, restarts: bool = False, watch: Any = None, **given: Any
) -> tuple[UpdateRun, Happened]:
    """A random stream through a queue, with work that takes several gaps between rows."""
    dice = random.Random(seed)
    keys, disorder = dice.randrange(1, 8), dice.choice((0, 0, 3)) * given.pop("disordered", True)
    rows = updates_from(dice, keys=keys, rows=dice.randrange(1, 80), disorder=disorder)
    by = Updates(("key",), schedule, **given)
    cost = dice.choice((1, COST, 3 * COST)) * SECOND
    again = random.Random(seed + 1)
    run = UpdateRun(
        by,
        lambda rows: rows * cost,
        restarts=lambda: restarts and again.random() < 0.3,
        disorder=disorder,
    )
    if watch is not None:
        run.watch = watch
    return run, run.run(rows)


def newest_by(rows: list[Row], until: int) -> dict[int, int]:
    """The greatest time of each key among rows that came until a moment."""
    found: dict[int, int] = {}
    for row in rows:
        if row.at <= until:
            found[row.key] = max(row.ts, found.get(row.key, row.ts))
    return found


@pytest.mark.parametrize("schedule", EVERY)
@given(seed=SEEDS)
def test_what_leaves_is_newest_in_order_accounted_for_and_promised(
    schedule: Schedule, seed: int
) -> None:
    def look(run: UpdateRun) -> None:
        queue = run.queue._queue
        came = sum(row.at <= run.now for row in run.happened.rows)
        assert queue.waiting + queue.given_up + queue.outdated + len(run.happened.shown) <= came
        if schedule in KEYED:
            waits = queue.read()
            assert waits["key"].n_unique() == waits.height == queue.waiting

    run, happened = played(seed, schedule, watch=look)
    assert happened.ended
    _is_newest_in_order(happened, run.now, schedule)
    _promises_are_kept(happened)
    queue = run.queue._queue
    assert len(happened.rows) == len(happened.shown) + queue.given_up + queue.outdated
    assert queue.memory.used == queue.memory.pages == 0
    assert not run._store.rows
    if schedule == "append":
        assert not queue.given_up


def _is_newest_in_order(happened: Happened, end: int, schedule: Schedule) -> None:
    """Rows of a key leave in the order of their times, each the newest, and at last the last."""
    last: dict[int, int] = {}
    for taken, _, number in happened.shown:
        row = happened.rows[number]
        if schedule in KEYED:
            assert row.ts == newest_by(happened.rows, taken)[row.key]
        assert row.ts >= last.get(row.key, row.ts)
        last[row.key] = row.ts
    if schedule != "shedding":
        assert last == newest_by(happened.rows, end)


def _promises_are_kept(happened: Happened) -> None:
    mark = None
    for each in happened.order:
        if isinstance(each, int):
            assert mark is None or each > mark
            mark = each
        else:
            assert mark is None or each.ts >= mark


@pytest.mark.parametrize("schedule", EVERY)
@given(seed=SEEDS)
def test_staleness_is_the_integral_of_what_was_unseen(schedule: Schedule, seed: int) -> None:
    run, happened = played(seed, schedule, disordered=schedule not in PLAIN)
    told = run.queue.staleness()
    begun = happened.rows[0].at
    replaced = schedule not in PLAIN
    for (key,), each in told.by_key.items():
        application = _average(happened, key, begun, run.now, 1, replaced)
        assert each.application == pytest.approx(application)
        assert each.queue == pytest.approx(_average(happened, key, begun, run.now, 0, replaced))


def _average(
    happened: Happened, key: int, begun: int, end: int, moment: int, replaced: bool
) -> float:
    """Second by second: the age of the oldest update not seen, which is linear in between.

    An update is seen once a row of its key is taken (shown) that came with it or after it; where
    rows replace each other what is taken stands for all that had come. Rows
    that were outdated when they came change nothing.
    """
    by_number = {row.number: row for row in happened.rows}
    own = [row for row in happened.rows if row.key == key]
    mine = [each for each in happened.shown if by_number[each[2]].key == key]
    counted = _updates(own, mine, by_number)

    def covers(shown: tuple[int, int, int]) -> int:
        return shown[0] if replaced else by_number[shown[2]].at

    area = 0.0
    for second in range(begun, end, SECOND):
        middle = second + SECOND // 2
        seen = [each for each in mine if each[moment] <= second]
        until = max((covers(each) for each in seen), default=-1)
        unseen = [row.at for row in counted if row.at > until and row.at <= second]
        if unseen:
            area += (middle - min(unseen)) / SECOND
    return area / (max(end - begun, 1) / SECOND)


def _updates(
    own: list[Row], mine: list[tuple[int, int, int]], by_number: dict[int, Row]
) -> list[Row]:
    """Rows of a key that were not outdated when they came."""
    found, newest = [], None
    for row in own:
        taken = [by_number[number].ts for at, _, number in mine if at < row.at]
        newest = max(taken, default=None)
        if newest is None or row.ts >= newest:
            found.append(row)
    return found


@pytest.mark.parametrize("schedule", EVERY)
@given(seed=SEEDS)
def test_going_on_from_what_was_saved_changes_nothing(schedule: Schedule, seed: int) -> None:
    _, straight = played(seed, schedule)
    run, again = played(seed, schedule, restarts=True)
    assert again.shown == straight.shown
    assert again.order == straight.order
    assert not run._store.rows


@pytest.mark.parametrize("schedule", ["in-place", "linecutting", "rare-first", "auto"])
@given(seed=SEEDS)
def test_no_key_starves(schedule: Schedule, seed: int) -> None:
    """A key that waits is served within a few rounds of all keys."""
    dice = random.Random(seed)
    keys = dice.randrange(2, 8)
    rows = updates_from(dice, keys=keys, rows=120, disorder=0)
    run = UpdateRun(Updates(("key",), schedule), lambda rows: rows * COST * SECOND)
    happened = run.run(rows)
    most = (PATIENCE + 2) * keys * COST * SECOND
    waited: dict[int, int] = {}
    events = sorted(
        [(row.at, 0, row.key) for row in rows]
        + [(taken, 1, rows[number].key) for taken, _, number in happened.shown]
    )
    for at, kind, key in events:
        if kind == 0:
            waited.setdefault(key, at)
        else:
            assert at - waited.pop(key, at) <= most


@given(seed=SEEDS)
def test_weights_are_honoured_and_starve_nobody(seed: int) -> None:
    """A key that counts ten times as much is less stale than the others are on average."""
    dice = random.Random(seed)
    rows = [Row(at * SECOND, 0, dice.randrange(6), at, at) for at in range(200)]
    by = Updates(("key",), "in-place", weights=(((0,), 10.0),))
    run = UpdateRun(by, lambda rows: rows * COST * SECOND)
    run.run(rows)
    told = run.queue.staleness()
    heavy = told.by_key.pop((0,)) if isinstance(told.by_key, dict) else told.by_key[(0,)]
    others = [each.application for each in told.by_key.values()]
    assert heavy.application < min(others)
    assert all(each.delivered > 2 for each in told.by_key.values())


@given(seed=SEEDS)
def test_all_rows_leave_while_there_is_time_and_the_newest_when_there_is_none(seed: int) -> None:
    """Full results, then the newest, then full results again."""
    dice = random.Random(seed)
    calm = [Row(at * 20 * SECOND, 0, dice.randrange(4), at * 20, at) for at in range(10)]
    begun = calm[-1].at + 20 * SECOND
    burst = [
        Row(begun + n * SECOND, 0, dice.randrange(4), begun // SECOND + n, 10 + n)
        for n in range(100)
    ]
    later = begun + 300 * SECOND
    after = [
        Row(later + n * 20 * SECOND, 0, dice.randrange(4), later // SECOND + n * 20, 110 + n)
        for n in range(10)
    ]
    by = Updates(("key",), "in-place", complete_within=30 * SECOND)
    run = UpdateRun(by, lambda rows: rows * COST * SECOND)
    happened = run.run(calm + burst + after)
    shown = {number for _, _, number in happened.shown}
    assert shown >= {row.number for row in (*calm, *after)}
    assert 0 < run.queue._queue.given_up < 100
    assert run.queue._queue.switches >= 2
    assert run.queue._queue.complete
    waits = [taken - happened.rows[number].at for taken, _, number in happened.shown]
    assert max(waits) <= 2 * 30 * SECOND
