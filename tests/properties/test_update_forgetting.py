"""Keys of update streams that expire or are deleted: what is shown stays, what is kept does not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.stream.duration import SECOND
from lowwater.stream.element import BEGINNING
from lowwater.updates import newest_join as newest_module
from lowwater.updates.options import Deletion, Schedule, Updates
from tests.support.checked_run import CheckedRun
from tests.support.loaded_run import LoadedRun, Mode
from tests.support.local_spark import LocalSpark
from tests.support.oracle import answer, multiset
from tests.support.update_run import Row, UpdateRun, updates_from

SEEDS = st.integers(0, 2**32)
KEYED: list[Schedule] = ["in-place", "fifo", "linecutting", "rare-first", "auto"]
SAYS_GONE = Deletion("number % 4 = 0", pl.col("number") % 4 == 0, (("number", "number"),))


@pytest.fixture(autouse=True, scope="module")
def _few_rows_are_many() -> Iterator[None]:
    """Joins drop rows that have ended though they have few."""
    with mock.patch.object(newest_module, "MANY", 0):
        yield


def forgetting(dice: random.Random, schedule: Schedule) -> tuple[Updates, int | None]:
    """A queue whose keys expire, are deleted, or both."""
    expire = dice.choice([1, 3, 10, 40, None])
    deletion = SAYS_GONE if expire is None or dice.random() < 0.5 else None
    by = Updates(
        ("key",),
        schedule,
        expire=None if expire is None else expire * SECOND,
        delete_when=deletion and deletion.text,
        deletion=deletion,
        complete_within=dice.choice([None, None, 30 * SECOND]),
    )
    return by, expire


def end_of(row: Row, by: Updates, expire: int | None) -> float:
    """By which mark a key ends whose newest row this is."""
    if by.deletion is not None and row.number % 4 == 0:
        return row.ts + 1
    return float("inf") if expire is None else row.ts + expire


def newest_of(rows: list[Row]) -> dict[int, Row]:
    """The newest row of each key; of those of one time the last that came."""
    found: dict[int, Row] = {}
    for row in rows:
        if row.key not in found or row.ts >= found[row.key].ts:
            found[row.key] = row
    return found


@pytest.mark.parametrize("schedule", KEYED)
@given(seed=SEEDS)
def test_a_key_is_kept_until_its_end_or_as_long_as_it_waits(schedule: Schedule, seed: int) -> None:
    """Beside a plain list of all rows that came: after a promise, the keys that are kept are those
    that have not ended by it and those that wait."""
    dice = random.Random(seed)
    disorder = dice.choice((0, 3))
    rows = updates_from(dice, keys=dice.randrange(1, 9), rows=60, disorder=disorder)
    by, expire = forgetting(dice, schedule)
    again = random.Random(seed + 1)
    cost = dice.choice((0.2, 1, 5, 15)) * SECOND
    run = UpdateRun(
        by,
        lambda many: int(many * cost),
        restarts=lambda: again.random() < 0.3,
        disorder=disorder,
        expire=expire,
    )
    marks = [BEGINNING]

    def look(run: UpdateRun) -> None:
        queue = run.queue._queue
        newest = newest_of(run.came)
        waits = {key for (key,), cell in queue.keys.cells.items() if cell.entries}
        kept = {key for (key,) in queue.keys.cells}
        lives = {key for key, row in newest.items() if end_of(row, by, expire) > run.mark}
        assert waits | lives <= kept <= set(newest)
        if run.mark > marks[-1]:
            marks.append(run.mark)
            assert kept == waits | lives
        forgotten = queue.keys.expired + queue.keys.deleted
        assert forgotten >= len(set(newest) - kept)
        assert run.queue.staleness().keys == len(kept)

    run.watch = look
    happened = run.run(rows)
    queue = run.queue._queue
    assert happened.ended
    assert len(rows) == len(happened.shown) + queue.given_up + queue.outdated
    last: dict[int, int] = {}
    for _, _, number in happened.shown:
        row = rows[number]
        assert row.ts >= last.get(row.key, row.ts), "no key goes back, forgotten or not"
        last[row.key] = row.ts
    assert last == {key: row.ts for key, row in newest_of(rows).items()}, "nothing is dropped"


SCHEMA = {"ts": pl.Int64, "k": pl.String, "v": pl.Int64}
PASSED = """
    SELECT ts, k, v FROM (
        SELECT *, max(ts) OVER (
            PARTITION BY k ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before FROM a
    ) WHERE before IS NULL OR ts >= before
"""


def table(dice: random.Random, disorder: int = 0, most: int = 40) -> pl.DataFrame:
    """Rows of a few keys, each of which is quiet for long at times, and arrivals."""
    rows: list[tuple[Any, ...]] = []
    at = 0
    for n in range(dice.randint(1, most)):
        at += dice.choice([0, 1, 1, 2, 9])
        key = dice.choice(["a", "a", "b", "c", None])
        rows.append((at - dice.randint(0, disorder), key, dice.randint(0, 5), n, float(at)))
    schema = {**SCHEMA, "n": pl.Int64, "at": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def options(dice: random.Random) -> dict[str, Any]:
    one, two = {"expire": dice.choice([1, 4, 7])}, {"delete_when": dice.choice(["v > 3", "v = 0"])}
    return dice.choice([one, two, one | two])


@pytest.mark.parametrize("mode", ["unhurried", "singly", "portions", "batches"])
@given(seed=SEEDS)
def test_what_leaves_is_what_leaves_of_keys_that_are_kept(mode: Mode, seed: int) -> None:
    """A key that is forgotten has no older row to come, and one that waits is worked on first."""
    dice = random.Random(seed)
    disorder = dice.choice([0, 3])
    rows = table(dice, disorder)
    given = options(dice)

    def run(**more: Any) -> list[tuple[Any, ...]]:
        log = lw.replay(rows, arrival="at")
        promise = lw.within(disorder) if disorder else lw.ordered()
        stream = lw.stream(log, name="a", time="ts", progress=promise, jump=None)
        query = stream.updates("k", **more).select("ts", "k", "v")
        done = LoadedRun(query, seed, 1.5, mode, restarts=True)
        return [tuple(row.values()) for _, row in done.delivered]

    found = run(**given)
    assert found == run()
    if mode == "unhurried":
        assert multiset(found) == answer(PASSED, {"a": rows})


@given(SEEDS, st.integers(1, 4))
def test_spread_over_buckets_all_rows_leave_and_keys_are_forgotten(seed: int, buckets: int) -> None:
    dice = random.Random(seed)
    rows = table(dice)
    stream = lw.stream(lw.replay(rows, arrival="at"), name="a", time="ts", jump=None)
    query = stream.updates("k", **options(dice)).select("ts", "k", "v")
    found = LocalSpark(query, seed, buckets).results()
    shown = {key: ts for ts, key, _ in sorted(found.rows(), key=lambda row: row[0])}
    last = answer("SELECT k, max(ts) FROM a GROUP BY k", {"a": rows})
    assert set(shown.items()) == set(last)


# ---- joins -------------------------------------------------------------------------------------

LIVE = """
    SELECT a.ts, a.k, a.v, b.ts AS ts_right, b.v AS v_right FROM a JOIN b ON a.k = b.k
    WHERE greatest(a.ts, b.ts) < least(a.ts + {one}, b.ts + {two})
"""
FOREVER = 10**9


def updates(rows: pl.DataFrame, name: str, **given: Any) -> lw.Stream:
    """Rows of which no key has two of one time."""
    log = lw.stream(rows, name=name, time="ts", jump=None, update_key="k", **given)
    return log.select("ts", "k", "v")


def one_a_time(dice: random.Random, most: int = 40) -> pl.DataFrame:
    return table(dice, most=most).unique(["ts", "k"], keep="first", maintain_order=True)


def last_by_key(rows: list[tuple[Any, ...]]) -> dict[Any, tuple[Any, ...]]:
    """What is shown last of each key, which is in the second column."""
    return {row[1]: row for row in rows}


def newest_live(live: Any, a: pl.DataFrame, b: pl.DataFrame) -> dict[Any, tuple[Any, ...]]:
    """The pairs of the newest row of each key on both sides, if they live at one time."""
    newest = [{k: ts for ts, k in each.select("ts", "k").sort("ts").rows()} for each in (a, b)]
    return {row[1]: row for row in live if (row[0], row[3]) == tuple(e[row[1]] for e in newest)}


@given(SEEDS, st.data())
def test_rows_meet_that_live_at_the_same_time(seed: int, data: Any) -> None:
    """Whatever is read first, and however far one side is ahead of the other."""
    dice = random.Random(seed)
    a, b = one_a_time(dice), one_a_time(dice)
    one, two = (dice.choice([1, 3, 8, None]) for _ in "ab")
    query = updates(a, "a", **({"expire": one} if one else {})).join(
        updates(b, "b", **({"expire": two} if two else {})), on="k"
    )
    found = CheckedRun(query, data.draw).results().rows()
    live = answer(LIVE.format(one=one or FOREVER, two=two or FOREVER), {"a": a, "b": b})
    assert set(found) <= set(live)
    shown = last_by_key(found)
    for key, row in newest_live(live, a, b).items():
        assert shown[key] == row


@given(SEEDS, st.integers(1, 3))
def test_spread_over_buckets_rows_meet_that_live_at_the_same_time(seed: int, buckets: int) -> None:
    dice = random.Random(seed)
    a, b = one_a_time(dice), one_a_time(dice)
    expire = dice.choice([1, 3, 8])
    query = updates(a, "a", expire=expire).join(updates(b, "b", expire=expire), on="k")
    found = LocalSpark(query, seed, buckets).results().rows()
    live = answer(LIVE.format(one=expire, two=expire), {"a": a, "b": b})
    assert set(newest_live(live, a, b).values()) <= set(found) <= set(live)


@given(SEEDS, st.data())
def test_of_three_joined_streams_those_rows_meet_that_live_at_the_same_time(
    seed: int, data: Any
) -> None:
    dice = random.Random(seed)
    a, b, c = (one_a_time(dice) for _ in "abc")
    given: dict[str, Any] = dice.choice([{}, {"expire": 5}])
    both = updates(a, "a", **given).join(updates(b, "b", **given), on="k")
    if dice.random() < 0.5:
        both = both.select("ts", "k", "v", "ts_right", "v_right")
    query = both.join(updates(c, "c", expire=5), on="k", suffix="_c")
    found = CheckedRun(query, data.draw).results().rows()
    one = 5 if given else FOREVER
    sql = f"""
        SELECT a.ts, a.k, a.v, b.ts, b.v, c.ts, c.v
        FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k
        WHERE greatest(a.ts, b.ts) < least(a.ts, b.ts) + {one}
        AND greatest(a.ts, b.ts, c.ts) < least(a.ts + {one}, b.ts + {one}, c.ts + 5)
    """
    live = answer(sql, {"a": a, "b": b, "c": c})
    assert set(found) <= set(live)
    newest = [{k: ts for ts, k in each.select("ts", "k").sort("ts").rows()} for each in (a, b, c)]
    shown = last_by_key(found)
    for row in live:
        if (row[0], row[3], row[5]) == tuple(each[row[1]] for each in newest):
            assert shown[row[1]] == row


@given(SEEDS, st.data())
def test_the_last_answer_of_a_deleted_key_is_of_the_row_that_deleted_it(
    seed: int, data: Any
) -> None:
    dice = random.Random(seed)
    a, b = one_a_time(dice), one_a_time(dice)
    query = updates(a, "a", delete_when="v > 3").join(updates(b, "b"), on="k")
    found = CheckedRun(query, data.draw).results().rows()
    assert set(found) <= set(answer(LIVE.format(one=FOREVER, two=FOREVER), {"a": a, "b": b}))
    newest = {k: (ts, v) for ts, k, v in a.select("ts", "k", "v").sort("ts").rows()}
    latest = {k: (ts, v) for ts, k, v in b.select("ts", "k", "v").sort("ts").rows()}
    for key, row in last_by_key(found).items():
        assert (row[0], row[2]) == newest[key]
        if newest[key][1] <= 3:
            assert (row[3], row[4]) == latest[key]
    for key in {key for key in newest if key is not None} & set(latest):
        if newest[key][1] <= 3:
            assert key in last_by_key(found)


# ---- what does not depend on which rows are read together --------------------------------------


@given(SEEDS)
def test_the_newest_answer_of_each_key_does_not_depend_on_chunks(seed: int) -> None:
    dice = random.Random(seed)
    a, b, c = (one_a_time(dice, 15) for _ in "abc")
    expire = dice.choice([{}, {"expire": 6}])

    def streams() -> list[lw.Stream]:
        named = zip("abc", (a, b, c), strict=True)
        return [updates(rows, name, **expire) for name, rows in named]

    def queries() -> list[lw.Stream]:
        one, two, three = streams()
        joined = one.join(two, on="k")
        chained = joined.join(three, on="k", suffix="_c").select("ts", "k", "ts_right", "ts_c")
        return [one.union(three), joined, one.join(two, on="k", within=3), chained]

    sizes = [1, dice.randint(2, 9), 1_000]
    for at in range(4):
        lasts = []
        for size in sizes:
            found = pl.DataFrame(queries()[at].collect(chunk_rows=size)).rows()
            lasts.append(last_by_key(found))
        if at == 0:  # of rows of one key and time the first counts that comes, of whichever stream
            lasts = [{key: row[:2] for key, row in each.items()} for each in lasts]
        kept = [set(each.items()) for each in lasts]
        if at in (0, 2) or not expire:
            assert kept[0] == kept[1] == kept[2]
        elif at == 1:
            live = newest_live(answer(LIVE.format(one=6, two=6), {"a": a, "b": b}), a, b)
            assert all(set(live.items()) <= each for each in kept)
