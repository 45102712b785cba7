"""A queue that several queries share: each is given, of every key, the newest row in the end."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import duckdb
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.operators.kernel import Host
from lowwater.stream.duration import SECOND
from lowwater.updates.options import Updates
from lowwater.updates.queue_kernel import QueuedRows
from lowwater.updates.shared.readers import Reader
from lowwater.updates.shared.shared_queue import SharedUpdateQueue
from tests.support.update_run import SCHEMA, TICKS, Row, UpdateRun, updates_from
from tests.unit.running import LONG

SEEDS = st.integers(0, 2**32)


# ---- the kernel --------------------------------------------------------------------------------


class SharedRun(UpdateRun):
    """A shared queue whose readers cost what they cost, beside what all cost together."""

    def __init__(self, by: Updates, costs: list[int], common: int, **options: Any):
        self.costs, self.common = costs, common
        self.given: dict[int, list[tuple[int, int, int]]] = {at: [] for at in range(len(costs))}
        """By query: when a row was taken, when it was shown, and its number."""
        super().__init__(by, lambda _: 0, **options)

    def _make(self) -> SharedUpdateQueue:
        readers = [Reader(frozenset([at]), 1.0 + at) for at in range(len(self.costs))]
        rows = QueuedRows(SCHEMA, {"ts": TICKS}, expire=self._expire)
        host = Host(lambda: self.now, singly=True)
        return SharedUpdateQueue(self._store, self._by, rows, host, readers)

    def _work(self) -> None:
        begun = self.now
        elements = self.queue.work_on()
        self.watch(self)
        (rows,) = (each for each in elements if isinstance(each, pl.DataFrame))
        queries = self.queue.queries
        took = self.common + sum(self.costs[query] for query in queries)
        self.now += took
        for query in queries:
            self.given[query] += [(begun, self.now, each) for each in rows["number"]]
        self._note(elements, begun)
        self.queue.record_costs({query: self.costs[query] for query in queries}, took)
        self.queue.end_portion(took, self.now)


def played(
    seed: int, *, restarts: bool = False, watch: Any = lambda _: None, **options: Any
) -> SharedRun:
    dice = random.Random(seed)
    disorder = dice.choice((0, 0, 3))
    rows = updates_from(
        dice, keys=dice.randrange(1, 6), rows=dice.randrange(1, 60), disorder=disorder
    )
    again = random.Random(seed + 1)
    run = SharedRun(
        Updates(("key",), dice.choice(("in-place", "auto"))),
        [dice.choice((1, 5, 15)) * SECOND for _ in range(dice.randrange(1, 4))],
        dice.choice((0, 0, 5)) * SECOND,
        restarts=lambda: restarts and again.random() < 0.3,
        disorder=disorder,
        **options,
    )
    run.watch = watch
    run.run(rows)
    return run


def staleness(rows: list[Row], given: list[tuple[int, int, int]], end: int) -> dict[int, float]:
    """The integral of the staleness of each key, from the definition: the age of the oldest update
    that the result of the key does not show, second by second (all times are whole seconds)."""
    by_number = {row.number: row for row in rows}
    areas: dict[int, float] = {}
    for key in {row.key for row in rows}:
        area = 0.0
        for now in range(0, end, SECOND):
            taken = [
                begun
                for begun, shown, number in given
                if by_number[number].key == key and shown <= now
            ]
            seen = max(taken, default=-1)
            late = [row.at for row in rows if row.key == key and seen < row.at <= now]
            if late:
                area += ((now + SECOND - min(late)) ** 2 - (now - min(late)) ** 2) / 2 / SECOND**2
        areas[key] = area
    return areas


@given(seed=SEEDS)
def test_every_query_is_given_the_newest_row_of_each_key_in_the_order_of_times(seed: int) -> None:
    def look(run: SharedRun) -> None:
        cells = run.queue._rows.keys.cells.values()
        waiting = [cell for cell in cells if cell.entries]
        assert all(any(each.behind for each in cell.keys) for cell in waiting)
        assert not any(each.behind for cell in cells if not cell.entries for each in cell.keys)
        assert run.queue._rows.waiting == len(waiting)

    run = played(seed, watch=look)
    rows = {row.number: row for row in run.happened.rows}
    newest = {
        key: max(row.ts for row in rows.values() if row.key == key)
        for key in {r.key for r in rows.values()}
    }
    assert run.happened.ended
    for shown in run.given.values():
        for key, last in newest.items():
            times = [rows[number].ts for _, _, number in shown if rows[number].key == key]
            assert times == sorted(times)
            assert times[-1] == last
    queue = run.queue._rows
    assert queue.memory.used == queue.memory.pages == queue.waiting == 0
    assert not run._store.rows


@given(seed=SEEDS)
def test_promises_cover_the_rows_that_any_query_still_waits_for(seed: int) -> None:
    promised = -1
    for each in played(seed).happened.order:
        if isinstance(each, int):
            promised = max(promised, each)
        else:
            assert each.ts >= promised


@given(seed=SEEDS)
def test_a_queue_goes_on_where_it_was_saved(seed: int) -> None:
    assert played(seed, restarts=True).given == played(seed).given


@given(seed=SEEDS)
def test_staleness_of_each_query_is_that_of_the_definition(seed: int) -> None:
    run = played(seed)
    end = run.now
    for query, shown in run.given.items():
        own = run.queue.staleness_of(query)
        length = (end - run.happened.rows[0].at) / SECOND
        if run.queue._rows.outdated or length == 0:
            continue
        expected = staleness(run.happened.rows, shown, end)
        for key, area in expected.items():
            assert abs(own.by_key[(key,)].application * length - area) < 1e-6 * (1 + area)


# ---- queries -----------------------------------------------------------------------------------

FAMILY = {
    "rows": ("SELECT * FROM T", lambda s: s),
    "computed": ("SELECT ts, k, v * 2 AS w FROM T", lambda s: s.select("ts", "k", w="v * 2")),
    "some": ("SELECT * FROM T WHERE v > 2", lambda s: s.where("v > 2")),
    "some computed": (
        "SELECT ts, k, v + 1 AS v FROM T WHERE v > 1",
        lambda s: s.where("v > 1").map(v="v + 1").select("ts", "k", "v"),
    ),
}
NEWEST = "SELECT ts, k, v FROM R QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts DESC) = 1"


def table(dice: random.Random) -> pl.DataFrame:
    count = dice.randrange(1, 60)
    columns = {
        "ts": range(count),
        "k": [dice.choice("aaabc") for _ in range(count)],
        "v": [dice.randrange(6) for _ in range(count)],
        "at": sorted(dice.uniform(0, count) for _ in range(count)),
    }
    return pl.DataFrame(columns)


@given(seed=SEEDS)
def test_the_last_answer_of_each_key_is_the_batch_answer_over_its_newest_row(seed: int) -> None:
    """Beside the batch query over all rows: what is shown is some of its answers, key by key in
    their order, and the newest row of a key has its answer."""
    dice = random.Random(seed)
    R = table(dice)
    stream = lw.stream(
        lw.replay(R, arrival="at"),
        name="R",
        time="ts",
        update_key="k",
        schedule=dice.choice(("in-place", "auto")),
    ).select("ts", "k", "v")
    names = dice.sample(sorted(FAMILY), dice.randrange(2, 5))
    queries = {name: FAMILY[name][1](stream) for name in names}
    costs = {name: lw.per_row(f"{dice.choice((1, 2, 7))} seconds") for name in names}
    weights = {name: dice.choice((1, 1, 5)) for name in names}
    runs = lw.together(queries, weights=weights).run(tick=0, charge=costs)
    assert runs.await_termination(timeout=LONG)
    for name in names:
        text = FAMILY[name][0]
        shown = pl.DataFrame(runs.results(name)).rows()
        every = duckdb.sql(text.replace(" T", " (SELECT ts, k, v FROM R) T")).fetchall()
        last = duckdb.sql(text.replace(" T", f" ({NEWEST}) T")).fetchall()
        assert set(shown) <= set(every)
        for key in set(R["k"]):
            own = [row for row in shown if row[1] == key]
            assert all(one[0] < two[0] for one, two in pairwise(own))
            assert [row for row in last if row[1] == key] in ([], own[-1:])
