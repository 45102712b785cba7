"""Joint promises of producers, in rows and beside them: one bound at least holds of later rows."""

from __future__ import annotations

import random
import warnings
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from lowwater.progress.demand import Demand
from lowwater.progress.intake import Intake
from lowwater.stream.element import BEGINNING, Punctuation
from tests.support.checked_run import CheckedRun
from tests.support.local_spark import LocalSpark, Unordered
from tests.support.oracle import answer, multiset, table_rows
from tests.unit.progress.judging import spec_of
from tests.unit.running import LONG
from tests.unit.sources.test_push import eventually

SCHEMA = {
    "a": pl.Int64,
    "b": pl.Int64,
    "s": pl.String,
    "ma": pl.Int64,
    "mb": pl.Int64,
}
PROGRESS = {"a": lw.punctuated("ma", jointly=True), "b": lw.punctuated("mb", jointly=True)}
ANY = Demand.any_value()
Row = tuple[int | None, int | None, str, int | None, int | None]
Bounds = tuple[int, int]
NONE = (BEGINNING, BEGINNING)


class Promised:
    """What has been promised of each channel, by the definition."""

    def __init__(self, names: list[str]) -> None:
        self.alone: dict[str, Bounds] = dict.fromkeys(names, NONE)
        self.joint: dict[str, Bounds | None] = dict.fromkeys(names, None)
        self.stream: tuple[Bounds, Bounds | None] = (NONE, None)

    def move(self) -> None:
        """What the stream promises: the least over its channels."""
        marks = [*self.alone.values()]
        least = tuple(min((each[at] for each in marks), default=BEGINNING) for at in (0, 1))
        alone = tuple(map(max, least, self.stream[0]))
        joint = list(self.joint.values())
        together = self.stream[1]
        if joint and None not in joint:
            together = tuple(min(each[at] for each in joint if each) for at in (0, 1))  # type: ignore[assignment]
        self.stream = (alone, together)  # type: ignore[assignment]

    def admit(self, name: str) -> None:
        if name not in self.alone:
            self.alone[name], self.joint[name] = self.stream

    def breaks(self, name: str, a: int, b: int) -> bool:
        one, two = self.alone[name], self.joint[name]
        broken = a < one[0] or b < one[1]
        return broken or (two is not None and a < two[0] and b < two[1])

    def take(self, name: str, ma: int | None, mb: int | None) -> None:
        if ma is not None and mb is not None:
            before = self.joint[name]
            if before is None or (ma >= before[0] and mb >= before[1]):
                self.joint[name] = (ma, mb)
            return
        one = self.alone[name]
        low = (BEGINNING if ma is None else ma, BEGINNING if mb is None else mb)
        self.alone[name] = (max(one[0], low[0]), max(one[1], low[1]))


def in_order(rows: list[Row], keyed: bool, announced: bool) -> list[str]:
    names = sorted({row[2] for row in rows}) if keyed else [""]
    promised, verdicts = Promised(names if announced or not keyed else []), []
    for a, b, s, ma, mb in rows:
        name = s if keyed else ""
        promised.admit(name)
        if a is None or b is None:
            verdicts.append("pure")
        else:
            verdicts.append("late" if promised.breaks(name, a, b) else "kept")
        promised.take(name, ma, mb)
        promised.move()
    return verdicts


def in_batches(rows: list[Row], batches: list[int], keyed: bool) -> list[str]:
    promised, verdicts, at = Promised([] if keyed else [""]), [], 0
    for size in batches:
        batch = [(*row[:2], row[2] if keyed else "", *row[3:]) for row in rows[at : at + size]]
        at += size
        known, (alone, joint) = set(promised.alone), promised.stream
        for a, b, name, _, _ in batch:
            if a is None or b is None:
                verdicts.append("pure")
                continue
            if name not in known:
                promised.alone[name], promised.joint[name] = alone, joint
            verdicts.append("late" if promised.breaks(name, a, b) else "kept")
        sent = [(name, ma, mb) for _, _, name, ma, mb in batch]
        for name, _, _ in sent:
            if name not in known:
                promised.alone[name], promised.joint[name] = alone, joint
        for name, ma, mb in sorted(sent, key=lambda each: [e or BEGINNING for e in each[1:]]):
            promised.take(name, ma, mb)
        promised.move()
    return verdicts


def made_rows(seed: int, most: int) -> list[Row]:
    chance = random.Random(seed)
    step, often = chance.choice([0.4, 1.0]), chance.choice([0.1, 0.4])
    found: list[Row] = []
    for at in range(chance.randint(0, most)):
        now = int(at * step)
        a, b = now + chance.randint(-3, 3), now + chance.randint(-3, 3)
        ma = now - chance.randint(0, 4) if chance.random() < often else None
        mb = now - chance.randint(0, 4) if chance.random() < often else None
        if ma is None and mb is not None and chance.random() < 0.7:
            mb = None
        pure = ma is not None and mb is not None and chance.random() < 0.3
        found.append((None if pure else a, None if pure else b, chance.choice("xyz"), ma, mb))
    return found


QUERIES: dict[str, tuple[Any, str]] = {
    "groups of both times": (
        lambda q: q.group_by("a", "b").agg(n="count(*)"),
        "SELECT a, b, count(*) FROM s GROUP BY ALL",
    ),
    "distinct": (lambda q: q.distinct("a", "b"), "SELECT DISTINCT a, b, FROM s"),
    "windows of the greatest": (
        lambda q: q.map(t="greatest(a, b)").window(5, on="t").agg(n="count(*)"),
        """SELECT CAST(floor(t / 5.0) AS BIGINT) * 5, CAST(floor(t / 5.0) AS BIGINT) * 5 + 5,
                  count(*) FROM (SELECT greatest(a, b) AS t FROM s) GROUP BY ALL""",
    ),
    "a union": (
        lambda q: (
            q.select("a", "b")
            .union(q.where("a > b").select("a", "b"))
            .group_by("a", "b")
            .agg(n="count(*)")
        ),
        """SELECT a, b, count(*) FROM (SELECT a, b FROM s UNION ALL
                                       SELECT a, b FROM s WHERE a > b) GROUP BY ALL""",
    ),
}


def seen(found: pl.DataFrame) -> Any:
    return table_rows(found.select("a", "b") if "ma" in found.columns else found)


def stream(source: Any, keyed: bool) -> Stream:
    channel = "s" if keyed else None
    return lw.stream(source, name="s", time="a", progress=PROGRESS, jump=None, channel=channel)


def refused(given: pl.DataFrame | None) -> Any:
    return multiset([] if given is None else given.select(list(SCHEMA)).rows())


@pytest.mark.filterwarnings("ignore::lowwater.StreamWarning")
@pytest.mark.parametrize("name", QUERIES)
@given(st.integers(0, 9_999), st.booleans(), st.booleans(), st.data())
def test_answers_and_late_rows_follow_from_the_promises_in_rows(
    name: str, seed: int, keyed: bool, announced: bool, data: Any
) -> None:
    build, sql = QUERIES[name]
    rows = made_rows(seed, 30)
    table = pl.DataFrame(rows, SCHEMA, orient="row")
    verdicts = pl.Series(in_order(rows, keyed, announced), dtype=pl.String)
    query = build(stream(table, keyed))
    run = CheckedRun(query, data.draw, announced=announced)
    found = seen(run.results())
    out = run.refused.get("s")
    late = refused(pl.concat(out, how="diagonal_relaxed") if out else None)
    assert late == multiset(table.filter(verdicts == "late").rows())
    assert found == answer(sql, {"s": table.filter(verdicts == "kept")})


@pytest.mark.filterwarnings("ignore::lowwater.StreamWarning")
@pytest.mark.parametrize("name", QUERIES)
@given(st.integers(0, 9_999), st.booleans(), st.booleans(), st.integers(1, 3), st.data())
def test_on_spark_promises_in_rows_hold_from_the_next_batch_on(
    name: str, seed: int, keyed: bool, ordered: bool, buckets: int, data: Any
) -> None:
    build, sql = QUERIES[name]
    rows = made_rows(seed, 40)
    table = pl.DataFrame(rows, SCHEMA, orient="row")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    batches = [b - a for a, b in pairwise([0, *cuts, len(rows)])]
    source: Any = table if ordered else Unordered(table, batches)
    judged = in_order(rows, keyed, True) if ordered else in_batches(rows, batches, keyed)
    verdicts = pl.Series(judged, dtype=pl.String)
    local = LocalSpark(build(stream(source, keyed)), seed, buckets)
    found = seen(local.results())
    assert refused(local.late("s")) == multiset(table.filter(verdicts == "late").rows())
    assert found == answer(sql, {"s": table.filter(verdicts == "kept")})


@given(st.integers(0, 9_999), st.booleans(), st.data())
def test_the_cut_into_chunks_and_restarts_change_nothing(seed: int, keyed: bool, data: Any) -> None:
    rows = made_rows(seed, 40)
    table = pl.DataFrame(rows, SCHEMA, orient="row")
    options: Any = {"channel": "s"} if keyed else {}
    spec = spec_of(table, time="a", progress=PROGRESS, **options)
    demands = {"a": ANY, "b": ANY}
    judged, late, at = Intake(spec, demands), [], 0
    promises: list[Punctuation] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.StreamWarning)
        while at < table.height:
            many = data.draw(st.integers(1, 9))
            if data.draw(st.booleans()):
                saved, judged = judged.snapshot(), Intake(spec, demands)
                judged.restore(saved)
            chunk = table.slice(at, many)
            at += many
            for part in judged.parts(chunk):
                taken = judged.take(chunk[part], 0)
                late += [] if taken.refused is None else taken.refused.rows()
                promises += [p for p in taken.promises if isinstance(p, Punctuation)]
    verdicts = pl.Series(in_order(rows, keyed, False), dtype=pl.String)
    assert multiset(row[:5] for row in late) == multiset(table.filter(verdicts == "late").rows())
    joint = [each for each in promises if not each.is_linear]
    assert all(two.goes_beyond(one.values) for one, two in pairwise(joint))


# ---- beside the rows ---------------------------------------------------------------------------


def pushed(**options: Any) -> tuple[lw.Push, Stream]:
    source = lw.push({"a": pl.Int64, "b": pl.Int64, "s": pl.String})
    contracts = {"a": lw.within(50), "b": lw.within(50)}
    return source, lw.stream(source, name="s", time="a", progress=contracts, **options)


def test_a_joint_promise_answers_groups_of_both_times() -> None:
    source, stream = pushed()
    run = stream.group_by("a", "b").agg(n="count(*)").run()
    source.send([{"a": 1, "b": 2}, {"a": 9, "b": 2}])
    source.punctuate({"a": 5, "b": 5})
    eventually(lambda: run.results().num_rows == 1)
    assert run.results().select(["a", "b"]).to_pylist() == [{"a": 1, "b": 2}]
    source.send([{"a": 4, "b": 4}, {"a": 4, "b": 6}])
    source.close()
    assert run.await_termination(LONG)
    assert run.results().num_rows == 3
    assert run.late_rows().select(["a", "b"]).to_pylist() == [{"a": 4, "b": 4}]


def test_a_joint_promise_of_a_channel_holds_for_its_rows() -> None:
    source, stream = pushed(channel="s")
    run = stream.run()
    source.send([{"a": 1, "b": 1, "s": "x"}, {"a": 1, "b": 1, "s": "y"}])
    source.punctuate({"a": 5, "b": 5}, channel="x")
    source.send([{"a": 2, "b": 2, "s": "x"}, {"a": 2, "b": 2, "s": "y"}])
    source.punctuate({"a": 7, "b": 7})
    source.send(
        [{"a": 6, "b": 6, "s": "x"}, {"a": 6, "b": 6, "s": "y"}, {"a": 6, "b": 7, "s": "z"}]
    )
    source.close()
    assert run.await_termination(LONG)
    late = run.late_rows().select(["a", "s"]).to_pylist()
    assert late == [{"a": 2, "s": "x"}, {"a": 6, "s": "x"}, {"a": 6, "s": "y"}]


def test_a_joint_promise_that_sets_a_bound_back_is_ignored_with_a_warning() -> None:
    source, stream = pushed()
    source.punctuate({"a": 5, "b": 5})
    source.punctuate({"a": 9, "b": 4})
    source.send({"a": 6, "b": 3})
    source.close()
    with pytest.warns(lw.StreamWarning, match="on a or b went backwards; the mark is 5 or 5"):
        assert stream.collect().num_rows == 1


@pytest.mark.parametrize(
    ("promise", "message"),
    [
        (({"a": 5, "c": 1},), "c"),
        (({"a": 5, "s": "x"},), "takes no promises on 's'"),
        (({},), "a joint promise is on columns, each with its bound"),
        (({"a": 5}, 7), "a joint promise is on columns, each with its bound"),
        (({"a": 5, "b": None},), "of type Int64, not None"),
    ],
)
def test_bounds_without_meaning_are_refused(promise: Any, message: str) -> None:
    source, stream = pushed()
    run = stream.run()
    with pytest.raises(lw.OptionError, match=message):
        source.punctuate(*promise)
    source.close()
    assert run.await_termination(LONG)


def test_a_joint_promise_of_a_group_is_refused() -> None:
    source, stream = pushed(groups="s")
    run = stream.run()
    with pytest.raises(lw.OptionError, match="promise each column of the group by itself"):
        source.punctuate({"a": 5, "b": 5}, group="x")
    source.close()
    assert run.await_termination(LONG)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"progress": {"a": PROGRESS["a"], "b": lw.ordered()}}, "and only 'a' is declared so"),
        ({"groups": "s"}, "leave groups= out"),
        ({"channel": "s", "stale_after": 5}, "leave stale_after= out"),
    ],
)
def test_marks_that_cannot_be_joint_are_refused(options: Any, message: str) -> None:
    frame = pl.DataFrame(schema=SCHEMA)
    with pytest.raises(lw.OptionError, match=message):
        lw.stream(frame, **{"time": "a", "progress": PROGRESS} | options)
