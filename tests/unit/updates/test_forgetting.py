"""Keys of update streams that expire or are deleted: what is kept, counted and told of them."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import polars as pl
import pytest

import lowwater as lw
from lowwater.operators.kernel import Host, Kernel
from lowwater.state.store import MemoryStore
from lowwater.stream.duration import SECOND
from lowwater.stream.element import ENDED, MARK, GroupPunctuation, Punctuation
from lowwater.stream.window import WindowSpec
from lowwater.updates.key_queue import report_of
from lowwater.updates.options import Updates, updates_of
from lowwater.updates.queue_kernel import QueuedRows
from lowwater.updates.update_queue import UpdateQueue
from lowwater.updates.windows.update_windows import UpdateWindows
from lowwater.updates.windows.window_kernel import WindowedRows
from tests.support.update_run import SCHEMA, TICKS
from tests.unit.running import finished

ROWS = 1_000
A_KEY = 5
"""Rows of a key, one a second; then the next key comes."""


def passing_keys(name: str, **options: Any) -> lw.Stream:
    """Keys that come and go: a few rows of each and then never again."""
    numbers = np.arange(ROWS)
    table = pl.DataFrame(
        {"ts": numbers, "k": numbers // A_KEY, "v": numbers % A_KEY, "at": numbers * 1.0}
    )
    log = lw.replay(table, arrival="at")
    return lw.stream(log, name=name, time="ts", update_key="k", **options).select("ts", "k", "v")


FORGETTING = [{"expire": "50 seconds"}, {"delete_when": "v = 4"}]


def state(run: lw.Run, name: str) -> int:
    return run.metrics().operator(name).state_rows_peak


@pytest.mark.parametrize("options", FORGETTING)
@pytest.mark.parametrize("charge", ["nothing", "0.9 seconds", "3 seconds"])
def test_a_queue_keeps_the_keys_that_live(options: dict[str, Any], charge: str) -> None:
    how: Any = charge if charge == "nothing" else lw.per_row(charge)
    kept, queue = (
        finished(each, tick=0, charge=how).metrics().operator("update")
        for each in (passing_keys("S"), passing_keys("S", **options))
    )
    assert kept.about["keys"] == ROWS // A_KEY
    assert queue.rows_out == kept.rows_out
    gone = int(queue.about["keys expired"]) + int(queue.about["keys deleted"])
    assert queue.about["keys"] == ROWS // A_KEY - gone < 20
    assert queue.staleness is not None
    assert queue.staleness.keys == queue.about["keys"]
    assert queue.state_rows_peak < 40


@pytest.mark.parametrize("options", FORGETTING)
@pytest.mark.parametrize("charge", ["0.1 seconds", "0.5 seconds"])
@pytest.mark.parametrize("windows", ["lazy", "eager"])
def test_a_queue_of_windows_keeps_the_keys_that_live(
    options: dict[str, Any], charge: str, windows: Any
) -> None:
    stream = passing_keys("S", windows=windows, **options)
    query = stream.window("10 s", slide="5 s").group_by("k").agg(n="count(*)")
    run = finished(query, tick=0, charge=lw.per_row(charge))
    queue = run.metrics().operator("update windows")
    gone = int(queue.about["keys expired"]) + int(queue.about["keys deleted"])
    assert queue.about["keys"] == ROWS // A_KEY - gone < 20
    assert queue.state_rows_peak < 150
    complete, shown = queue.about["windows complete"], queue.about["windows shown"]
    assert complete == 2 * ROWS // A_KEY, "counted though their keys are forgotten"
    assert shown == run.results().num_rows
    assert queue.about["given up for newer ones"] == complete - shown


@pytest.mark.parametrize("options", FORGETTING)
def test_joins_of_newest_rows_keep_those_that_live(options: dict[str, Any]) -> None:
    def runs(**options: Any) -> list[lw.Run]:
        a, b, c = (passing_keys(name, **options) for name in "abc")
        pairs = a.join(b, on="k")
        chained = pairs.select("k", "ts", "ts_right", w="v").join(c, on="k", suffix="_c")
        return [finished(each, chunk_rows=50) for each in (pairs, chained)]

    all_kept, some_kept = runs(), runs(**options)
    for name, kept, run in zip(("newestjoin", "newestjoin#11"), all_kept, some_kept, strict=True):
        assert state(kept, name) == 2 * ROWS // A_KEY
        assert state(run, name) < 200
        assert run.results().num_rows == kept.results().num_rows


def test_what_left_a_join_within_a_band_is_forgotten_by_promises() -> None:
    query = passing_keys("a").join(passing_keys("b"), on="k", within=3)
    run = finished(query, chunk_rows=100)
    assert state(run, "newest#") < 150


# ---- bytes -------------------------------------------------------------------------------------

FACTOR = 2
"""State is told to within this factor of what memory it takes."""
KEYS = 2_000


def taken(kernel: Kernel, rows: int, key: Any, schema: Any) -> int:
    """Bytes of memory that a kernel grew by, with so many rows of a key each."""
    chunks = [
        pl.DataFrame({"ts": [n // 50], "key": [key(n)], "number": [n]}, schema)
        for n in range(0, rows)
    ]
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for chunk in chunks:
            kernel.on_chunk(0, chunk)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def close(told: int, real: int) -> bool:
    return real / FACTOR <= told <= real * FACTOR


@pytest.mark.parametrize("expire", [None, 10_000])
@pytest.mark.parametrize("unhurried", [True, False])
@pytest.mark.parametrize(
    ("key", "kind"), [(lambda n: n + 10**6, pl.Int64()), (lambda n: f"{n:040}", pl.String())]
)
def test_bytes_of_a_queue_are_those_of_its_keys_and_rows(
    key: Any, kind: pl.DataType, unhurried: bool, expire: int | None
) -> None:
    schema = {**SCHEMA, "key": kind}
    by = updates_of("key") if expire is None else updates_of("key", expire=expire)
    host = Host(lambda: 5 * SECOND, hurried=not unhurried)
    queue = UpdateQueue(MemoryStore(), by, QueuedRows(schema, {"ts": TICKS}, expire=expire), host)
    real = taken(queue, KEYS, key, schema)
    rows, told = queue.held
    assert rows == KEYS * (1 if unhurried else 2), "a key, and a row that waits"
    assert close(told, real), (told, real)


@pytest.mark.parametrize("windows", ["lazy", "eager"])
def test_bytes_of_a_queue_of_windows_are_those_of_its_keys_and_rows(windows: Any) -> None:
    by = updates_of("key", windows=windows)
    arriving = WindowedRows(SCHEMA, "ts", TICKS, WindowSpec(10, 5))
    queue = UpdateWindows(MemoryStore(), by, arriving, Host(lambda: 5 * SECOND))
    real = taken(queue, KEYS, lambda n: n + 10**6, SCHEMA)
    rows, told = queue.held
    assert rows == 2 * KEYS
    assert close(told, real), (told, real)
    assert queue.on_punctuation(0, Punctuation.linear("ts", 1_000)) is not None
    while queue.has_work:
        queue.work_on()
        queue.end_portion(1, 6 * SECOND)
    rows, told = queue.held
    assert rows == KEYS
    assert close(told, sum_of(queue)), told


def sum_of(queue: UpdateWindows) -> int:
    """Bytes of all objects that a queue holds on to, keys by key."""
    from sys import getsizeof

    seen: set[int] = set()
    total, todo = 0, list(queue._queue.keys.cells.values())
    while todo:
        each = todo.pop()
        if id(each) in seen or isinstance(each, type) or each is queue._queue:
            continue
        seen.add(id(each))
        total += getsizeof(each)
        slots = [getattr(each, name) for name in getattr(type(each), "__slots__", ())]
        if isinstance(each, list | tuple | set):
            todo += each
        elif type(each).__module__.startswith("lowwater"):
            base = getattr(type(each).__mro__[1], "__slots__", ())
            todo += [*slots, *(getattr(each, name) for name in base)]
    return total


# ---- when --------------------------------------------------------------------------------------


def queue_of(
    by: Updates, ports: int = 1, expire: int | None = None, hurried: bool = True
) -> UpdateQueue:
    host = Host(hurried=hurried, singly=True)
    rows = QueuedRows(SCHEMA, {"ts": TICKS}, ports, expire=expire)
    return UpdateQueue(MemoryStore(), by, rows, host)


def rows(*each: tuple[int, int, int]) -> pl.DataFrame:
    return pl.DataFrame(list(each), schema=SCHEMA, orient="row")


def keys(queue: UpdateQueue) -> set[Any]:
    return {key for (key,) in queue._queue.keys.cells}


def test_a_key_that_waits_is_shown_before_it_is_forgotten() -> None:
    queue = queue_of(updates_of("key", expire=5), expire=5)
    queue.on_chunk(0, rows((0, 1, 0), (1, 2, 1)))
    queue.on_punctuation(0, Punctuation.linear("ts", 100))
    assert keys(queue) == {1, 2}
    left, *_ = queue.work_on()
    assert isinstance(left, pl.DataFrame)
    assert left["number"].to_list() == [0]
    queue.end_portion(1, 1)
    queue.work_on()
    assert keys(queue) == {2}
    queue.end_portion(1, 2)
    queue.on_punctuation(0, Punctuation.linear("ts", 101))
    assert not keys(queue)
    assert queue.about()["keys expired"] == 2


def test_a_key_that_ends_by_its_own_mark_and_by_that_of_the_stream_is_counted_once() -> None:
    by = updates_of("key", expire=5)
    arriving = WindowedRows(SCHEMA, "ts", TICKS, WindowSpec(10, 10), groups=("key",), expire=5)
    queue = UpdateWindows(MemoryStore(), by, arriving, Host(singly=True))
    queue.on_chunk(0, rows((0, 1, 0)))
    own = pl.DataFrame({"key": [1], MARK: [100]}, schema_overrides={"key": SCHEMA["key"]})
    queue.on_group_punctuation(0, GroupPunctuation("ts", own))
    queue.on_punctuation(0, Punctuation.linear("ts", 100))
    while queue.has_work:
        queue.work_on()
        queue.end_portion(1, 1)
    queue.on_punctuation(0, Punctuation.linear("ts", 101))
    assert not queue._queue.keys.cells
    assert queue.about()["keys expired"] == 1


def test_keys_of_several_inputs_end_by_the_least_mark() -> None:
    queue = queue_of(updates_of("key", expire=5), ports=2, expire=5, hurried=False)
    queue.on_chunk(0, rows((0, 1, 0)))
    queue.on_punctuation(0, Punctuation.linear("ts", 100))
    assert keys(queue) == {1}
    queue.on_punctuation(1, Punctuation.linear("ts", 4))
    assert keys(queue) == {1}
    queue.on_punctuation(1, Punctuation.linear("ts", 5))
    assert not keys(queue)


def deletions(query: lw.Stream) -> UpdateQueue:
    by = query.node.updates
    assert by is not None
    return queue_of(by, hurried=False)


def test_a_deleted_key_ends_right_after_its_last_row_and_may_come_again() -> None:
    source = lw.stream(pl.DataFrame(schema=SCHEMA), name="S", time="ts", update_key="key")
    with pytest.raises(lw.QueryError, match="say so once"):
        source.updates("key", delete_when="number < 0")
    source = lw.stream(
        pl.DataFrame(schema=SCHEMA),
        name="S",
        time="ts",
        update_key="key",
        delete_when="number < 0",
    )
    queue = deletions(source)
    left, gone = queue.on_chunk(0, rows((3, 1, -1), (3, 2, 5), (4, 3, -1), (5, 3, 1)))
    assert isinstance(left, pl.DataFrame)
    assert left.height == 4
    assert isinstance(gone, GroupPunctuation)
    assert gone.attribute == ENDED
    assert gone.marks.rows() == [(1, 4)], "what came later says that 3 is there again"
    assert keys(queue) == {1, 2, 3}
    told = queue.on_punctuation(0, Punctuation.linear("ts", 3))
    assert keys(queue) == {1, 2, 3}, "a row of the same time may come and be the newest"
    told = queue.on_punctuation(0, Punctuation.linear("ts", 5))
    assert keys(queue) == {2, 3}
    assert not [each for each in told if isinstance(each, GroupPunctuation)], "it was told before"
    queue.on_chunk(0, rows((6, 1, 7)))
    assert keys(queue) == {1, 2, 3}


def test_a_condition_that_is_null_deletes_nothing() -> None:
    table = pl.DataFrame({"ts": [1, 2, 9], "k": ["a", "b", "c"], "gone": [True, None, None]})
    stream = lw.stream(table, name="S", time="ts", update_key="k", delete_when="gone")
    queue = finished(stream).metrics().operator("update")
    assert queue.about["keys deleted"] == 1
    assert queue.about["keys"] == 2


def test_columns_of_the_condition_may_get_other_names_before_a_queue_that_stands_later() -> None:
    def stream(name: str) -> lw.Stream:
        table = pl.DataFrame({"ts": [1, 5, 9], "k": ["a", "b", "c"], "v": [0, 1, 1]})
        return lw.stream(table, name=name, time="ts", update_key="k", delete_when="v = 0")

    both = stream("A").select("ts", "k", w="v").union(stream("B").select("ts", "k", w="v"))
    assert finished(both).metrics().operator("update").about["keys deleted"] == 1
    with pytest.raises(lw.QueryError, match="delete_when='v = 0' needs v of its rows; keep that"):
        stream("A").select("ts", "k").union(stream("B").select("ts", "k"))
    with pytest.raises(lw.QueryError, match="window: the queue stands here"):
        stream("A").select("ts", "k").window(5).group_by("k").agg(n="count(*)")
    assert stream("A").select("ts", "k").where("k = 'a'").collect().num_rows == 1


def test_keys_of_latent_rows_expire_by_when_they_came() -> None:
    table = pl.DataFrame({"k": [1, 2, 3, 4], "at": [0.0, 1.0, 20.0, 21.0]})
    log = lw.replay(table, arrival="at")
    stream = lw.stream(
        log, name="S", time="seen", stamp="latent", update_key="k", expire="5 seconds"
    )
    run = finished(stream, tick=0)
    queue = run.metrics().operator("update")
    assert run.results().num_rows == 4
    assert queue.about["keys expired"] == 2
    assert queue.about["keys"] == 2


def test_staleness_of_keys_that_are_forgotten_is_that_of_their_life() -> None:
    """Keys that live for seconds, in a run of an hour, are as stale as they are while they live."""
    whole = finished(passing_keys("S"), tick=0, charge=lw.per_row("0.9 seconds"))
    some = finished(passing_keys("S", expire=20), tick=0, charge=lw.per_row("0.9 seconds"))
    rare, real = (run.metrics().operator("update").staleness for run in (whole, some))
    assert rare is not None
    assert real is not None
    assert rare.application < 0.03
    assert 0.1 < real.application < 0.9


# ---- what is said ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"expire": 0}, "expire= is a length of time above zero"),
        ({"expire": "1 ms"}, "expire= of 1 ms is finer than the time column"),
        ({"expire": "1 s", "schedule": "append"}, "expire= is for queues of keys"),
        ({"delete_when": "v = 0", "schedule": "shedding"}, "delete_when= is for queues of keys"),
        ({"delete_when": " "}, "delete_when= is a condition on a row"),
        ({"delete_when": "w = 0"}, "delete_when=: unknown column 'w'"),
        ({"delete_when": "v + 1"}, "delete_when=: a condition must be true or false"),
        ({"delete_when": "1 = 1"}, "reads no column"),
    ],
)
def test_wrong_options_say_what_is_right(options: dict[str, Any], message: str) -> None:
    with pytest.raises(lw.QueryError, match=message):
        passing_keys("S", **options)


def test_keys_end_by_promises_and_where_none_is_made_that_is_said() -> None:
    table = pl.DataFrame({"ts": [1], "k": [1]})
    stream = lw.stream(table, name="S", time="ts", progress=lw.unpromised())
    with pytest.raises(lw.QueryError, match="nothing is promised about ts of S; declare progress="):
        stream.updates("k", expire=5)
    with pytest.raises(lw.OptionError, match="expire= is for update streams; add update_key="):
        lw.stream(table, name="S", time="ts", expire=5)


def test_explain_says_how_long_keys_are_kept() -> None:
    kept = passing_keys("S").explain()
    assert "keys are kept for ever; expire= or delete_when= bounds that" in kept
    given = passing_keys("S", expire="1 minute", delete_when="v = 0").explain()
    assert "by k, in-place, keys expire after 1 minute, deleted when v = 0" in given
    assert "keys are forgotten 1 minute after their newest row, by the mark, or when a row" in given
    both = passing_keys("A", expire=5).join(passing_keys("B"), on="k").explain()
    assert "until they expire, but those of the right for ever; expire= bounds that" in both
    assert "which older ones are shown before it depends on which rows are read together" in both
    for options, says in (
        ({}, ", for ever; expire= bounds that"),
        ({"expire": 5}, ", until they expire"),
        ({"delete_when": "v = 0"}, ", until their key is deleted"),
    ):
        a, b = (passing_keys(name, **options) for name in "AB")  # type: ignore[arg-type]
        assert f"of both inputs{says}" in a.join(b, on="k").explain()


def slow(rows: pl.DataFrame) -> pl.DataFrame:
    return rows


@pytest.mark.parametrize(
    ("query", "where"),
    [
        (lambda s: s("A").apply(slow).window(5).group_by("k").agg(n="count(*)"), "the window"),
        (lambda s: s("A").apply(slow).union(s("B")), "the union"),
    ],
)
def test_explain_says_which_work_stands_before_the_queue(query: Any, where: str) -> None:
    said = (
        "before the queue, on every row: slow; to run it on rows that leave the queue alone, apply"
        " it behind"
    )
    assert f"{said} {where}" in query(passing_keys).explain()
    assert "before the queue" not in passing_keys("A").apply(slow).explain()


def test_work_behind_a_window_is_done_for_windows_that_are_shown() -> None:
    """Before the window it is done for every row."""
    seen = [0]

    def count(rows: pl.DataFrame) -> pl.DataFrame:
        seen[0] += rows.height
        return rows

    def shown(query: lw.Stream) -> int:
        seen[0] = 0
        finished(query, tick=0, charge=lw.per_row("20 seconds"))
        return seen[0]

    stream = passing_keys("S")
    windows = stream.window(10, slide=5).group_by("k").agg(n="count(*)")
    assert shown(stream.apply(count).window(10, slide=5).group_by("k").agg(n="count(*)")) == ROWS
    assert 0 < shown(windows.apply(count)) < 250
    assert 0 < shown(stream.apply(count)) < ROWS / 2


def test_an_aggregate_of_ones_own_gets_the_rows_of_windows_that_are_worked_on() -> None:
    seen = [0]

    def add(total: int, rows: pl.DataFrame) -> int:
        seen[0] += rows.height
        return total + int(rows["v"].sum())

    own = lw.aggregate(int, add, lambda one, two: one + two, int, ("v",), pl.Int64)
    query = passing_keys("S").window(10, slide=5).group_by("k").agg(total=own, n="count(*)")
    batch = query.collect()
    seen[0] = 0
    shown = finished(query, tick=0, charge=lw.per_row("20 seconds")).results()
    assert 0 < shown.num_rows < batch.num_rows
    assert seen[0] == sum(shown["n"].to_pylist())


def test_a_key_that_ends_twice_in_one_step_is_reported_once() -> None:
    schema = {"k": pl.String(), "v": pl.Int64()}
    (report,) = report_of([(("a",), 5), ((None,), 3), (("a",), 12), ((None,), 12)], ["k"], schema)
    assert isinstance(report, GroupPunctuation)
    assert report.marks.rows() == [("a", 12), (None, 12)]
    assert report_of([], ["k"], schema) == []
