"""The queue of windows, in small examples: what leaves, when, and what is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.errors import OptionError, QueryError
from lowwater.operators.kernel import Host
from lowwater.plan.physical.planner import compile_plan
from lowwater.state.store import MemoryStore
from lowwater.stream.element import MARK, Element, End, GroupPunctuation, Punctuation
from lowwater.stream.time_domain import TimeDomain
from lowwater.stream.window import WindowSpec
from lowwater.updates.options import Updates, updates_of
from lowwater.updates.windows.append_windows import AppendWindows
from lowwater.updates.windows.update_windows import UpdateWindows
from lowwater.updates.windows.window_kernel import WindowedRows
from tests.support.loaded_run import LoadedRun

SCHEMA = {"ts": pl.Int64(), "k": pl.String(), "v": pl.Int64()}
TICKS = TimeDomain(pl.Int64(), 1)


class Driven:
    """A queue of windows and a clock in seconds."""

    def __init__(
        self,
        size: int,
        slide: int,
        by: Updates | None = None,
        singly: bool = True,
        hurried: bool = True,
        **options: Any,
    ):
        self.now = 0
        self.by = by or updates_of("k", **options)
        kind = AppendWindows if self.by.schedule in ("append", "shedding") else UpdateWindows
        self.store = MemoryStore()
        self.kernel = kind(
            self.store,
            self.by,
            WindowedRows(SCHEMA, "ts", TICKS, WindowSpec(size, slide)),
            Host(lambda: self.now * 10**9, singly=singly, hurried=hurried),
        )

    def rows(self, *rows: tuple[int, str]) -> list[Element]:
        table = [(ts, k, ts) for ts, k in rows]
        return list(self.kernel.on_chunk(0, pl.DataFrame(table, SCHEMA, orient="row")))

    def promise(self, mark: int) -> list[Element]:
        return list(self.kernel.on_punctuation(0, Punctuation.linear("ts", mark)))

    def work(self, cost: int = 0) -> list[tuple[Any, ...]]:
        """A portion: its rows as (window, key, time), and keys whose window is closed."""
        elements = list(self.kernel.work_on())
        self.now += cost
        self.kernel.end_portion(cost * 10**9, self.now * 10**9)
        return left(elements)


def left(elements: Sequence[Element]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for each in elements:
        if isinstance(each, pl.DataFrame):
            found += each.select("window_start", "k", "ts").rows()
        elif isinstance(each, GroupPunctuation) and each.attribute == "window_start":
            found += [("over", *row) for row in each.marks.rows()]
        elif isinstance(each, End):
            found.append(("end",))
    return found


def told_by(elements: Sequence[Element]) -> dict[str, int]:
    """What is promised of the whole stream."""
    return dict(each.bounds[0] for each in elements if isinstance(each, Punctuation))


# ---- lazy ----------------------------------------------------------------------------------


def test_the_newest_complete_window_leaves_and_older_ones_are_given_up() -> None:
    run = Driven(2, 2)
    run.rows((0, "a"), (1, "a"), (2, "a"))
    assert not run.kernel.has_work
    run.promise(2)
    assert run.kernel.has_work
    run.rows((3, "a"), (4, "a"))
    run.promise(4)
    assert run.work() == [(2, "a", 2), (2, "a", 3)]
    assert not run.kernel.has_work
    assert run.kernel._queue.memory.used == 1, "the row of the window that is open"
    about = run.kernel.about()
    assert (about["windows complete"], about["windows shown"]) == (2, 1)


def test_rows_of_windows_that_overlap_leave_again() -> None:
    run = Driven(3, 1)
    run.rows((0, "a"), (2, "a"))
    run.promise(3)
    assert run.work() == [(0, "a", 0), (0, "a", 2)]
    run.rows((3, "a"))
    run.promise(5)
    assert run.work() == [(2, "a", 2), (2, "a", 3)]


def test_windows_without_rows_of_a_key_are_none_of_its_windows() -> None:
    run = Driven(2, 2)
    run.rows((0, "a"), (9, "b"))
    run.promise(9)
    assert run.work()[0] == (0, "a", 0)
    assert not run.kernel.has_work
    run.promise(30)
    assert run.work()[0] == (8, "b", 9)
    assert not run.kernel.has_work


def test_a_window_of_one_key_is_closed_while_others_wait() -> None:
    run = Driven(2, 2)
    run.rows((0, "a"), (0, "b"))
    assert told_by(run.promise(2)) == {"window_start": 0, "window_end": 2}
    assert run.work() == [(0, "a", 0), ("over", "a", 2)]
    assert told_by(run.kernel.work_on()) == {"window_start": 2, "window_end": 4}


def test_at_the_end_the_newest_windows_leave_and_nothing_is_left() -> None:
    run = Driven(4, 2)
    run.rows((0, "a"), (5, "a"), (6, "b"))
    assert run.kernel.on_end(0) == []
    elements = run.kernel.work_on()
    assert left(elements) == [(4, "a", 5)]
    assert told_by(elements)["window_start"] == 6, "which closes the one from 4 on"
    assert run.work() == [(6, "b", 6), ("over", "b", 8), ("end",)]
    memory = run.kernel._queue.memory
    assert (memory.used, memory.bytes, run.store.rows) == (0, 0, 0)


def test_a_row_may_make_an_earlier_window_the_first_to_end() -> None:
    run = Driven(2, 2)
    run.rows((5, "a"))
    run.rows((2, "a"))
    run.promise(4)
    assert run.work()[0] == (2, "a", 2)


def test_rows_between_windows_are_in_none() -> None:
    run = Driven(2, 5)
    run.rows((3, "a"), (4, "a"))
    run.promise(20)
    assert not run.kernel.has_work
    assert run.kernel.held == (0, 0)


# ---- eager ---------------------------------------------------------------------------------


def test_rows_leave_as_they_come_and_a_window_closes_when_it_is_complete() -> None:
    run = Driven(3, 3, windows="eager")
    run.rows((0, "a"))
    assert run.work() == [(0, "a", 0)]
    assert not run.kernel.has_work
    run.rows((2, "a"), (1, "a"))
    assert run.work() == [(0, "a", 2), (0, "a", 1)]
    assert not run.kernel.has_work, "a row may still come"
    run.promise(3)
    assert run.work() == []
    assert not run.kernel.has_work
    assert run.kernel.about()["windows shown"] == 1


def test_a_window_that_begins_takes_the_place_of_one_that_waits() -> None:
    run = Driven(3, 1, windows="eager")
    run.rows((0, "a"))
    run.rows((0, "a"), (1, "a"), (2, "a"))
    assert run.kernel._queue.memory.used == 1, "only rows of the newest window are kept"
    assert run.work() == [(2, "a", 2)]
    run.rows((3, "a"), (4, "a"), (5, "a"))
    assert run.work() == [(2, "a", 3), (2, "a", 4)], "the window that was begun is finished first"
    run.promise(6)
    assert run.work() == []
    assert run.work() == [(5, "a", 5)]


def test_a_late_row_counts_for_the_window_that_is_worked_on_and_for_no_older_one() -> None:
    run = Driven(2, 2, windows="eager")
    run.rows((4, "a"))
    assert run.work() == [(4, "a", 4)]
    run.rows((7, "a"), (5, "a"), (3, "a"))
    assert run.work() == [(4, "a", 5)]
    run.promise(8)
    run.work()
    assert run.work() == [(6, "a", 7)]


def test_keys_whose_windows_are_worked_on_go_before_those_that_wait() -> None:
    run = Driven(4, 4, windows="eager")
    run.rows((0, "a"), (0, "b"))
    assert [run.work(), run.work()] == [[(0, "a", 0)], [(0, "b", 0)]]
    run.rows((1, "c"), (1, "b"), (1, "a"))
    served = [run.work()[0][1] for _ in range(3)]
    assert served == ["b", "a", "c"]


def test_a_key_keeps_its_turn_while_rows_of_its_window_are_there() -> None:
    run = Driven(4, 4, windows="eager")
    run.rows((0, "a"), (0, "b"))
    run.work()
    run.rows((1, "a"))
    assert run.work() == [(0, "a", 1)]
    assert run.work() == [(0, "b", 0)]
    run.rows((2, "a"))
    run.rows((2, "b"))
    assert run.work() == [(0, "b", 2)], "b is still under processing; a went idle"
    assert run.work() == [(0, "a", 2)]


def test_windows_that_only_wait_to_be_closed_are_closed_together() -> None:
    run = Driven(2, 2, windows="eager")
    run.rows((0, "a"), (0, "b"), (2, "c"))
    assert [run.work()[0][1] for _ in range(3)] == ["a", "b", "c"]
    assert not run.kernel.has_work
    run.promise(2)
    run.rows((2, "d"))
    elements = run.kernel.work_on()
    assert (left(elements), told_by(elements)) == ([], {"window_start": 2, "window_end": 4})
    run.kernel.end_portion(0, 0)
    assert run.kernel.about()["windows shown"] == 2, "and d has not been waited for"
    assert run.work() == [(2, "d", 2)]


# ---- all of them ---------------------------------------------------------------------------


def test_a_portion_has_about_as_many_rows_as_asked_for() -> None:
    run = Driven(2, 2, singly=False)
    run.rows(*((0, key) for key in "abcdefgh"))
    run.promise(2)
    sizes = []
    while run.kernel.has_work:
        sizes.append(len([row for row in run.work() if row[0] == 0]))
    assert sizes == [1, 7], "the first portion is one row, the next what its cost allows"


def test_where_work_takes_no_time_rows_pass_with_all_their_windows() -> None:
    run = Driven(3, 1, windows="eager", hurried=False)
    assert left(run.rows((0, "a"))) == [(-2, "a", 0), (-1, "a", 0), (0, "a", 0)]
    assert told_by(run.promise(2)) == {"window_start": 0, "window_end": 3}
    told = run.kernel.on_group_punctuation(
        0, GroupPunctuation("ts", pl.DataFrame({"k": ["a"], MARK: [5]}))
    )
    assert left(told) == [("over", "a", 3)]
    assert left(run.kernel.on_end(0)) == [("end",)]


def test_what_is_promised_of_a_key_completes_its_windows_alone() -> None:
    run = Driven(2, 2)
    run.rows((0, "a"), (0, "b"))
    marks = pl.DataFrame({"k": ["a", "z"], MARK: [2, 9]})
    told = run.kernel.on_group_punctuation(0, GroupPunctuation("ts", marks))
    assert left(told) == [("over", "a", 0)]
    assert run.work() == [(0, "a", 0), ("over", "a", 2)]
    assert not run.kernel.has_work
    run.rows((9, "z"))
    other = GroupPunctuation("ts", pl.DataFrame({"v": [1], MARK: [99]}))
    assert run.kernel.on_group_punctuation(0, other) == [], "not by its key"
    assert not run.kernel.has_work
    later = run.kernel.on_group_punctuation(
        0, GroupPunctuation("ts", pl.DataFrame({"k": ["a"], MARK: [7]}))
    )
    assert left(later) == [("over", "a", 6)]
    again = GroupPunctuation("ts", pl.DataFrame({"k": ["a"], MARK: [7]}))
    assert run.kernel.on_group_punctuation(0, again) == [], "nothing is promised twice"


def test_windows_of_a_key_are_complete_when_its_own_row_came() -> None:
    run = Driven(2, 2)
    run.rows((0, "a"))
    run.kernel.on_group_punctuation(
        0, GroupPunctuation("ts", pl.DataFrame({"k": ["a"], MARK: [0]}))
    )
    for run.now, tick in ((1, 0), (5, 2), (7, 3)):
        run.rows((tick, "b"))
    run.now = 9
    run.kernel.on_group_punctuation(
        0, GroupPunctuation("ts", pl.DataFrame({"k": ["b"], MARK: [3]}))
    )
    told = run.kernel.staleness().by_key
    assert (told["b",].now, told["a",].now) == (9 - 5, 0)


def test_it_asks_for_the_end_of_the_first_window() -> None:
    run = Driven(3, 3)
    assert run.kernel.requests() == []
    run.rows((7, "a"), (4, "b"))
    (ask,) = run.kernel.requests()
    assert (ask.attribute, ask.mark) == ("ts", 6)
    (needed,) = run.kernel.needs("window_start", 4)
    assert needed.mark == 6, "windows from 6 on: that from 3 on has to be over"
    assert run.kernel.needs("window_end", 9) == run.kernel.needs("window_start", 6)
    assert run.kernel.needs("v", 1) == []


def test_an_append_queue_lets_every_row_out_for_every_window() -> None:
    run = Driven(2, 1, schedule="append")
    run.rows((0, "a"), (1, "a"))
    run.promise(1)
    assert run.kernel.waiting_since == 0
    assert run.work() == [(-1, "a", 0), (0, "a", 0)]
    assert run.work() == [(0, "a", 1), (1, "a", 1)]
    assert run.kernel.about()["windows shown"] == 1
    assert run.store.rows == 0


def test_windows_are_shed_so_that_there_is_time_for_the_others() -> None:
    table = pl.DataFrame({"ts": range(600), "at": range(600), "k": ["a"] * 600})
    stream = lw.stream(
        lw.replay(table, arrival="at"), name="s", time="ts", update_key="k", schedule="shedding"
    )
    query = stream.window(4, slide=1).group_by("k").agg(n="count(*)")
    for cost, share in ((0.1, 1.0), (0.5, 0.5), (1.0, 0.25)):
        run = query.run(tick=0, clock="virtual", charge=lw.per_row(f"{cost} seconds"))
        run.await_termination()
        metrics = run.metrics()
        assert metrics.rows_out / 600 == pytest.approx(share, rel=0.15)
        assert metrics.operator("update windows").about["windows shown"] == metrics.rows_out


# ---- in a query ----------------------------------------------------------------------------


def trades(**options: Any) -> lw.Stream:
    rows = [(ts, "GOOG" if ts % 3 else "GM", "x", float(ts)) for ts in range(12)]
    schema = {"ts": pl.Int64, "symbol": pl.String, "place": pl.String, "price": pl.Float64}
    table = pl.DataFrame(rows, schema, orient="row").with_columns(at=pl.col("ts"))
    options = {"update_key": "symbol"} | options
    return lw.stream(lw.replay(table, arrival="at"), name="trades", time="ts", **options)


@pytest.mark.parametrize("windows", ["lazy", "eager"])
def test_columns_are_those_of_any_window_aggregate(windows: Any) -> None:
    query = trades(windows=windows).window(5).group_by("symbol").agg(mean="avg(price)")
    plain = trades(update_key=None).window(5).group_by("symbol").agg(mean="avg(price)")
    answers = [
        pl.DataFrame(each.collect()).sort("window_start", "symbol") for each in (query, plain)
    ]
    assert answers[0].equals(answers[1])
    names = [operator.name for operator in compile_plan(query._node).operators]
    assert names == ["source", "update windows", "window"]


def test_windows_go_over_rows_that_are_filtered_and_computed_first() -> None:
    stream = trades().where("price > 2").map(twice="price * 2")
    query = stream.window(5).group_by("place", "symbol").agg(most="max(twice)").where("most > 8")
    run = LoadedRun(query, 1, cost=0.01)
    found = [(row["place"], row["symbol"], row["most"]) for _, row in run.delivered]
    assert found == [("x", "GM", 18.0), ("x", "GOOG", 16.0), ("x", "GOOG", 22.0)]


@pytest.mark.parametrize(
    ("make", "error", "why"),
    [
        (lambda s: s.window(5).group_by("place"), QueryError, "add symbol to group_by.place."),
        (lambda s: s.window(5), QueryError, "grouped by its key"),
        (lambda s: s.session(5).group_by("symbol"), QueryError, "session"),
        (lambda s: s.window(rows=5).group_by("symbol"), QueryError, "row"),
        (lambda s: s.window(5, slide="on change").group_by("symbol"), QueryError, "on change"),
        (lambda s: s.window(5, keep="rows").group_by("symbol"), OptionError, "keep="),
        (lambda s: s.window(5, table=8).group_by("symbol"), OptionError, "table="),
        (lambda s: s.window(5, flush=lw.slow(5)).group_by("symbol"), OptionError, "flush="),
    ],
)
def test_what_windows_of_an_update_stream_cannot_be(make: Any, error: Any, why: str) -> None:
    with pytest.raises(error, match=why):
        make(trades()).agg(n="count(*)")


def test_options_that_windows_cannot_keep_are_refused() -> None:
    with pytest.raises(OptionError, match="complete_within="):
        trades(complete_within="1 second").window(5).group_by("symbol").agg(n="count(*)")
    named = trades().map(window_end="price")
    with pytest.raises(QueryError, match="every window has a column 'window_end'"):
        named.window(5).group_by("symbol").agg(n="count(*)")


def test_how_stale_windows_were_is_told_by_a_run() -> None:
    query = trades().window(2).group_by("symbol").agg(n="count(*)")
    run = query.run(tick=0, clock="virtual", charge=lw.per_row("3 seconds"))
    run.await_termination()
    operator = run.metrics().operator("update windows")
    assert operator.staleness is not None
    assert set(operator.staleness.by_key) == {("GOOG",), ("GM",)}
    assert operator.staleness.application > operator.staleness.queue > 0
    assert 0 < operator.about["windows shown"] < operator.about["windows complete"]
    assert operator.about["seconds a row"] == pytest.approx(3)
