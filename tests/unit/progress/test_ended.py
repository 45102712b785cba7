"""Groups and channels that end: nothing of them is kept, and rows after the end are refused."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from lowwater.operators.kernel import ALONE, Kernel
from lowwater.plan.physical.planner import compile_plan
from lowwater.progress import ended
from lowwater.progress.demand import Demand
from lowwater.progress.intake import Intake
from lowwater.progress.producer import PromisedMarks
from lowwater.state.store import MemoryStore
from lowwater.stream.element import Element, GroupPunctuation
from tests.support.checked_run import feed
from tests.support.local_spark import LocalSpark, Unordered
from tests.unit.progress.judging import spec_of
from tests.unit.running import LONG

SCHEMA = {"ts": pl.Int64, "s": pl.String, "v": pl.Int64, "gone": pl.Boolean}
ANY = Demand.any_value()
STEPS = 60
BATCH = 3
"""Groups that come and end together."""


def coming_and_going(steps: int) -> Iterator[pl.DataFrame]:
    """Groups that come with a few rows and end with the last of them, some at a time."""
    for step in range(steps):
        names = [f"group {step * BATCH + at:06}" for at in range(BATCH)]
        rows = [(100 + step + at, name, at, at == 2) for at in range(3) for name in names]
        yield pl.DataFrame(rows, SCHEMA, orient="row")


def declared(name: str, source: Any = None, key: str = "groups", **more: Any) -> Stream:
    options: Any = {key: "s", **more}
    frame = pl.DataFrame(schema=SCHEMA) if source is None else source
    contract = options.pop("progress", lw.within(5))
    return lw.stream(frame, name=name, time="ts", progress=contract, ended="gone", **options)


QUERIES: dict[str, Callable[..., Stream]] = {
    "windows": lambda a, _: a.window(10, slide=5).group_by("s").agg(n="count(*)"),
    "sessions": lambda a, _: a.session(4).group_by("s").agg(n="count(*)"),
    "distinct": lambda a, _: a.distinct("ts", "s"),
    "groups of a time": lambda a, _: a.group_by("ts", "s").agg(n="count(*)"),
    "a window of windows": lambda a, _: (
        a.window(5)
        .group_by("s")
        .agg(n="count(*)")
        .window(10, on="window_start")
        .group_by("s")
        .agg(m="sum(n)")
    ),
    "on change": lambda a, _: a.window(4, slide="on change").group_by("s").agg(n="count(*)"),
    "a union": lambda a, b: a.union(b).window(10).group_by("s").agg(n="count(*)"),
    "a join": lambda a, b: a.join(b, on="s", within=3),
    "a left join and windows": lambda a, b: (
        a.join(b, on="s", within=3, how="left").window(10).group_by("s").agg(n="count(*)")
    ),
    "an anti join": lambda a, b: a.join(b, on="s", within=3, how="anti"),
}


class State:
    """The kernels and intakes of a query, driven by hand."""

    def __init__(self, query: Stream, settles: bool):
        self._plan, self._settles = compile_plan(query._node), settles
        self._stores = [MemoryStore() for _ in self._plan.operators]
        self._kernels: dict[int, Kernel] = {
            each.index: each.build(self._stores[each.index], ALONE) for each in self._plan.kernels
        }
        self._intakes = {
            each.index: Intake(each.spec, self._plan.demands[each.index])
            for each in self._plan.sources
        }

    def take(self, rows: pl.DataFrame) -> None:
        for index, intake in self._intakes.items():
            for part in intake.parts(rows):
                taken = intake.take(rows[part], 0)
                for element in (taken.rows, *taken.promises):
                    self._emit(index, element)
        for each in (*self._kernels.values(), *self._intakes.values()) if self._settles else ():
            each.settle()

    def _emit(self, index: int, element: Element) -> None:
        if isinstance(element, pl.DataFrame) and not element.height:
            return
        for reader, port in self._plan.consumers(index):
            for out in feed(self._kernels[reader], port, element):
                self._emit(reader, out)

    def size(self) -> tuple[int, int]:
        """Rows in the stores, and bytes beside them."""
        parts = [*self._kernels.values(), *self._intakes.values()]
        beside = sum(len(pickle.dumps(each.snapshot())) for each in parts)
        return sum(store.rows for store in self._stores), beside


@pytest.mark.parametrize("settles", [False, True])
@pytest.mark.parametrize("name", QUERIES)
def test_state_is_no_larger_however_many_groups_came_and_ended(name: str, settles: bool) -> None:
    state = State(QUERIES[name](declared("a"), declared("b")), settles)
    sizes = []
    with mock.patch.object(ended, "MOST", 5):
        for rows in coming_and_going(STEPS):
            state.take(rows)
            sizes.append(state.size())
    early, late = sizes[STEPS // 4 : STEPS // 2], sizes[STEPS // 2 :]
    for part, slack in ((0, 0), (1, 64)):  # numbers may get longer
        assert max(size[part] for size in late) <= max(size[part] for size in early) + slack


class Weighed(LocalSpark):
    """A run whose state is weighed after each batch: bytes of the buckets, and of their chunks."""

    def _run_batch(self, read: Any) -> None:
        super()._run_batch(read)
        kept = self._state.values()
        chunks = [len(body) for each in kept for body in each.chunks.values()]
        self.sizes.append((sum(len(each.index or b"") for each in kept), len(chunks), sum(chunks)))

    sizes: list[tuple[int, int, int]]


@pytest.mark.parametrize(
    ("name", "buckets"),
    [("windows", 3), ("sessions", 1), ("a union", 2), ("a left join and windows", 2)],
)
def test_on_spark_state_is_no_larger_either(name: str, buckets: int) -> None:
    batches = list(coming_and_going(40))
    source: Any = [
        Unordered(pl.concat(batches), [each.height for each in batches]) for _ in range(2)
    ]
    query = QUERIES[name](declared("a", source[0]), declared("b", source[1]))
    with mock.patch.object(ended, "MOST", 5):
        run = Weighed(query, 1, buckets)
        run.sizes = []
        for each in run._feeds:  # both in step: what one is ahead of the other is kept
            each._schedule = mock.Mock(random=lambda: 0.5)  # type: ignore[union-attr]
        run.results()
    early, late = run.sizes[8:20], run.sizes[20:-1]
    for part in range(3):
        most = max(size[part] for size in early)
        assert max(size[part] for size in late) <= 1.25 * most + 64


# ---- rows after the end ------------------------------------------------------------------------


def rows(*given: tuple[Any, ...]) -> pl.DataFrame:
    return pl.DataFrame([(*row, False)[:4] for row in given], SCHEMA, orient="row")


def test_rows_after_the_end_are_refused_with_the_reason_and_counted_by_channel() -> None:
    log = rows((1, "a", 1), (2, "b", 1), (3, "a", 2, True), (4, "a", 3), (99, "a", 3), (5, "b", 1))
    run = declared("s", log).window(10).group_by("s").agg(n="count(*)").run()
    assert run.await_termination(LONG)
    assert sorted(run.results()["n"].to_pylist()) == [2, 2]
    late = pl.DataFrame(run.late_rows())
    assert late.select("ts", "_reason", "_late_by_seconds", "_mark").rows() == [
        (4, "after its end", None, None),
        (99, "after its end", None, None),
    ]
    (line,) = run.metrics().stream("s").late
    assert (line.channel, line.reason, line.rows, line.longest_seconds) == (
        "a",
        "after its end",
        2,
        0.0,
    )


def test_with_fail_a_row_after_the_end_stops_the_query() -> None:
    log = rows((1, "a", 1, True), (2, "a", 1))
    with pytest.raises(lw.BrokenPromise, match=r"'s', channel 'a': a row with ts = 2 .* no more"):
        declared("s", log, late="fail").collect()


@pytest.mark.parametrize("key", ["groups", "channel"])
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=40), st.data())
def test_the_last_that_ended_are_remembered_and_others_begin_anew(
    key: str, given: list[tuple[str, bool]], data: Any
) -> None:
    """Which rows come after an end follows from the order alone, not from the cut into chunks."""
    table = rows(*((50, name, at, gone) for at, (name, gone) in enumerate(given)))
    memory: list[str] = []
    over = []
    for name, gone in given:
        over.append(name in memory)
        if gone and name not in memory:
            memory = [*memory, name][-2:]
    with mock.patch.object(ended, "MOST", 2):
        options: Any = {key: "s"}
        spec = spec_of(table, **options, ended="gone")
        judged = Intake(spec, {"ts": ANY.with_linear(key == "channel")})
        refused: list[int] = []
        at = 0
        while at < table.height:
            many = data.draw(st.integers(1, 12))
            if data.draw(st.booleans()):
                saved, judged = judged.snapshot(), Intake(spec, {"ts": ANY})
                judged.restore(saved)
            chunk = table.slice(at, many)
            at += many
            for part in judged.parts(chunk):
                taken = judged.take(chunk[part], 0)
                refused += [] if taken.refused is None else taken.refused["v"].to_list()
    assert sorted(refused) == [at for at, each in enumerate(over) if each]


def test_a_promise_for_a_group_that_has_ended_is_ignored_with_a_warning() -> None:
    spec = spec_of(pl.DataFrame(schema=SCHEMA), groups="s", ended="gone")
    judged = Intake(spec, {"ts": ANY.with_linear(False)})
    taken = judged.take(rows((1, "a", 1, True)), 0)
    (promise,) = taken.promises
    assert isinstance(promise, GroupPunctuation)
    assert promise.over["s"].to_list() == ["a"]
    with pytest.warns(lw.StreamWarning, match=r"channel 'a': a promise was made .* after"):
        assert judged.take_promise(PromisedMarks({"ts": 5}, "a")) == []


def test_a_channel_that_ended_holds_the_stream_no_more() -> None:
    spec = spec_of(pl.DataFrame(schema=SCHEMA), channel="s", channels=("a", "b"), ended="gone")
    judged = Intake(spec, {"ts": ANY}, ("a", "b"))
    judged.take(rows((30, "a", 1), (40, "a", 2), (7, "b", 1)), 0)
    assert judged.slowest("ts") == "b"
    judged.take(pl.DataFrame([(None, "b", None, True)], SCHEMA, orient="row"), 0)
    assert judged.mark("ts") == 40
    judged.take(pl.DataFrame([(None, "a", None, True)], SCHEMA, orient="row"), 0)
    assert judged.mark("ts") == 40  # nobody is left, and a new channel joins here


def test_stale_channels_and_ends_go_together() -> None:
    log = rows(
        *((at, name, 1) for at in range(0, 60, 10) for name in "abc"),
        *((at, name, 1) for at in range(60, 200, 10) for name in "ab"),
        (200, "a", 1, True),
        (210, "b", 1, True),
        (220, "d", 1),
    )
    stream = declared("s", log, key="channel", stale_after="50 seconds", progress=lw.ordered())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.StreamWarning)
        run = stream.window(10).agg(n="count(*)").run(chunk_rows=1)
        assert run.await_termination(LONG)
    assert sum(run.results()["n"].to_pylist()) == log.height
    assert run.metrics().late_rows == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs channel= or groups="),
        ({"groups": "s", "ended": "v"}, "ended= names a Boolean column.*'v' has type Int64"),
        ({"groups": "s", "ended": "goen"}, "goen"),
    ],
)
def test_ends_without_meaning_are_refused(options: Any, message: str) -> None:
    options = {"ended": "gone"} | options
    with pytest.raises((lw.OptionError, lw.QueryError), match=message):
        lw.stream(pl.DataFrame(schema=SCHEMA), time="ts", **options)


def test_an_update_stream_deletes_its_keys_otherwise() -> None:
    frame = pl.DataFrame(schema=SCHEMA)
    with pytest.raises(lw.QueryError, match="by delete_when=: write the condition 'gone' there"):
        lw.stream(frame, time="ts", groups="s", ended="gone", update_key="s")


def test_the_end_of_nothing_is_refused() -> None:
    for wrong in ({}, {"channel": "a", "group": "a"}):
        with pytest.raises(lw.OptionError, match=r"the stream itself ends by close\(\)"):
            lw.push(SCHEMA).end(**wrong)


@pytest.mark.parametrize("key", ["channel", "groups"])
def test_a_program_ends_a_channel_or_group_of_its_rows(key: str) -> None:
    source = lw.push(SCHEMA)
    options: Any = {key: "s"}
    stream = lw.stream(source, name="s", time="ts", **options)
    run = stream.window(10).group_by("s").agg(n="count(*)").run()
    source.send(rows((1, "a", 1), (2, "b", 1), (3, "b", 1)))
    source.end(**{"group" if key == "groups" else "channel": "a"})
    source.send(rows((4, "a", 1), (30, "b", 1)))
    source.close()
    assert run.await_termination(LONG)
    assert sorted(run.results()["n"].to_pylist()) == [1, 1, 2]
    assert run.late_rows()["_reason"].to_pylist() == ["after its end"]


@pytest.mark.parametrize("cut", [1, 2])
@pytest.mark.parametrize("contract", [lw.ordered(), lw.within_rows(0)], ids=["table", "loop"])
def test_a_group_that_comes_after_all_have_ended_joins_at_the_mark(contract: Any, cut: int) -> None:
    rows = [(100, "x", 1, True), (99, "y", 1, None), (98, "z", 1, True)]
    log = pl.DataFrame(rows, SCHEMA, orient="row")
    (source,) = compile_plan(declared("a", log, progress=contract, jump=None)._node).sources
    taker = Intake(source.spec, {"ts": ANY})  # the mark of the whole stream is used
    kept = []
    for at in range(0, log.height, cut):
        chunk = log[at : at + cut]
        for part in taker.parts(chunk):
            kept += taker.take(chunk[part], 0).rows["ts"].to_list()
    assert kept == [100]
