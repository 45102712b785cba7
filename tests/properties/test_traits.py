"""Traits that operators declare hold of their kernels, and layouts that rest on them are sound.

Every kind of node is compiled and run over small streams. What each kernel was fed is kept, and fed
again: with rows of one value alone, with rows spread over copies, row by row, with columns emptied.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import isabstract
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lowwater as lw
from lowwater.operators.kernel import ALONE, Finisher, Host, Kernel, Reducer
from lowwater.plan import nodes
from lowwater.plan.physical.layout import Layout, Stage, lay_out
from lowwater.plan.physical.operator import KernelOperator, Operator, PhysicalPlan, PlanShape
from lowwater.plan.physical.planner import compile_plan
from lowwater.progress.intake import Intake
from lowwater.state.store import MemoryStore
from lowwater.stream.element import Element, End, Punctuation
from lowwater.stream.time_domain import ROWS
from tests.support.checked_run import feed
from tests.support.oracle import multiset

SCHEMA = {"ts": pl.Int64, "k": pl.Int64, "v": pl.Int64}
Fed = list[tuple[int, Element]]
"""What a kernel was fed: ports and elements, in order."""
Keep = Callable[[int, pl.DataFrame], pl.DataFrame]
"""Rows of a port to those that are fed."""


def stream(name: str, rows: pl.DataFrame, **options: Any) -> lw.Stream:
    given = {"progress": lw.within(6), "time": "ts"} | options
    return lw.stream(rows, name=name, jump=None, **given)


def counted(stream: lw.Stream, *keys: str, **options: Any) -> lw.Stream:
    return stream.window(5, **options).group_by(*keys).agg(n="count(*)", most="max(v)")


def doubled(chunk: pl.DataFrame) -> pl.DataFrame:
    return chunk.with_columns(pl.col("v") * 2)


def latent(stream: lw.Stream) -> lw.Stream:
    source = stream._node.source  # type: ignore[attr-defined]
    bare = lw.stream(source, name="l", time="seen", stamp="latent")
    return bare.window("1 second").group_by("k").agg(n="count(*)")


def updating(stream: lw.Stream, **options: Any) -> lw.Stream:
    return stream.updates("k", **options)


def unpromised(stream: lw.Stream) -> lw.Stream:
    """The same rows in order of time, with nothing promised of them."""
    node: Any = stream._node
    rows = node.source.table.sort("ts")
    return lw.stream(rows, name=node.spec.name, time="ts", progress=lw.unpromised(), jump=None)


Streams = tuple[lw.Stream, lw.Stream, lw.Stream]
QUERIES: dict[str, Callable[[lw.Stream, lw.Stream, lw.Stream], lw.Stream]] = {
    "filter": lambda a, b, c: a.where("v > 0"),
    "project": lambda a, b, c: a.select("ts", other="k", more="v + k"),
    "swap": lambda a, b, c: a.distinct().select("ts", k="v", v="k"),
    "apply": lambda a, b, c: a.apply(doubled).distinct("ts", "k"),
    "union": lambda a, b, c: a.union(b, c),
    "window": lambda a, b, c: counted(a, "k"),
    "window of all": lambda a, b, c: counted(a),
    "window of rows": lambda a, b, c: a.window(rows=3).agg(n="sum(v)"),
    "windows that slide": lambda a, b, c: a.window(6, slide=2).group_by("k").agg(n="sum(v)"),
    "slow windows": lambda a, b, c: counted(a, "k", flush=lw.slow()),
    "slow sessions": lambda a, b, c: a.session(3, flush=lw.slow(2, within=5))
    .group_by("k")
    .agg(n="count(*)"),
    "slow left join": lambda a, b, c: a.join(
        b, on="k", within=3, how="left", flush=lw.slow(2, within=4)
    ),
    "slow anti join": lambda a, b, c: a.join(
        b, on="k", within=3, how="anti", flush=lw.slow(2, within=4)
    ),
    "lazy windows": lambda a, b, c: counted(a, "k", flush=lw.lazy()),
    "windows from a table": lambda a, b, c: counted(a, "k", table=2),
    "windows that keep rows": lambda a, b, c: counted(a, "k", keep="rows"),
    "windows over windows": lambda a, b, c: counted(
        counted(a, "k", "v").select(ts="window_start", k="k", v="n"), "k"
    ),
    "session": lambda a, b, c: a.session(3).group_by("k").agg(n="count(*)"),
    "last rows": lambda a, b, c: a.window(rows=3, slide_rows=2, by="k").agg(n="sum(v)"),
    "time by rows": lambda a, b, c: a.window(9, slide_rows=2, by="k").agg(n="max(v)"),
    "all by rows": lambda a, b, c: a.window(9, slide_rows=3).agg(n="sum(v)", m="min(k)"),
    "on change": lambda a, b, c: a.window(5, slide="on change").group_by("k").agg(n="sum(v)"),
    "groups": lambda a, b, c: a.group_by("ts", "k").agg(n="count(*)"),
    "distinct": lambda a, b, c: a.distinct("ts", "v"),
    "order": lambda a, b, c: a.where("v > 0").order_by(),
    **{
        f"{how} join": lambda a, b, c, how=how: a.join(b, on=[("k", "v")], within=3, how=how)
        for how in ("inner", "left", "right", "full", "semi", "anti")
    },
    **{
        f"{how} join of one name": lambda a, b, c, how=how: a.join(b, on="k", within=3, how=how)
        for how in ("inner", "left", "full")
    },
    "semi join on the time": lambda a, b, c: a.join(b, on=["ts", "k"], how="semi"),
    "anti join on the time": lambda a, b, c: a.join(b, on=["ts", "k"], how="anti"),
    **{
        f"{how} join, {order}": lambda a, b, c, how=how, order=order: a.join(
            b, on="k", within=3, how=how, order=order
        )
        for how in ("inner", "left")
        for order in ("filter-order", "sync-filter")
    },
    "join of many": lambda a, b, c: lw.join([a, b, c], on=[("k", "v", "k")], within=3),
    "join of many, filter-order": lambda a, b, c: lw.join(
        [a, b, c], on="k", within=3, order="filter-order"
    ),
    "join of many, sync-filter": lambda a, b, c: lw.join(
        [a, b, c], on="k", within=3, order="sync-filter"
    ),
    "join of many, one of updates": lambda a, b, c: lw.join(
        [a, b, updating(c)], on="k", within=3
    ),
    "join without a window": lambda a, b, c: unpromised(a).join(unpromised(b), on=["ts", "k"]),
    "outer join of streams that promise nothing": lambda a, b, c: unpromised(a).join(
        unpromised(b), on=["ts", "k"], how="full"
    ),
    "near times of streams that promise nothing": lambda a, b, c: unpromised(a).join(
        unpromised(b), on="k", within=2, how="left"
    ),
    "stamp": lambda a, b, c: latent(a),
    "updates": lambda a, b, c: updating(a),
    "updates of two": lambda a, b, c: updating(a).union(updating(b)),
    "windows of updates": lambda a, b, c: counted(updating(a), "k"),
    "windows of updates, all of them": lambda a, b, c: counted(updating(a, schedule="append"), "k"),
    "join of updates": lambda a, b, c: updating(a).join(updating(b), on="k"),
    "join of updates near each other": lambda a, b, c: updating(a).join(
        updating(b), on="k", within=5
    ),
}  # fmt: skip


def kinds(node: nodes.Node) -> Iterator[type[nodes.Node]]:
    yield type(node)
    for each in node.inputs:
        yield from kinds(each)


def below(kind: type[nodes.Node]) -> Iterator[type[nodes.Node]]:
    for each in kind.__subclasses__():
        if each.__module__ == nodes.__name__:
            yield from ([each] if not isabstract(each) else [])
            yield from below(each)


def empty() -> Streams:
    rows = pl.DataFrame(schema=SCHEMA)
    return stream("a", rows), stream("b", rows), stream("c", rows)


def test_every_kind_of_node_is_tried() -> None:
    tried = {kind for build in QUERIES.values() for kind in kinds(build(*empty()).node)}
    assert tried >= set(below(nodes.Node))


# ---- running -----------------------------------------------------------------------------------


@dataclass
class Run:
    """A plan run to its end, keeping what each kernel was fed."""

    plan: PhysicalPlan
    chance: random.Random
    fed: dict[int, Fed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._kernels = {each.index: built(each) for each in self.plan.kernels}
        self.fed = {index: [] for index in self._kernels}
        feeds = []
        for source in self.plan.sources:
            demands = self.plan.demands[source.index]
            feeds.append((source, Intake(source.spec, demands), source.source.open()))
        while feeds:
            at = self.chance.randrange(len(feeds))
            source, intake, reader = feeds[at]
            if reader.ended:
                self._emit(source, End())
                feeds.pop(at)
                continue
            chunk = reader.read(2**62, self.chance.randint(1, 6))
            assert chunk is not None
            taken = intake.take(chunk, 0)
            for element in (taken.rows, *taken.promises):
                self._emit(source, element)

    def _emit(self, operator: Operator, element: Element) -> None:
        if isinstance(element, pl.DataFrame) and not element.height:
            return
        for index, port in self.plan.consumers(operator.index):
            self.fed[index].append((port, element))
            for each in fed(self._kernels[index], port, element):
                self._emit(self.plan.operators[index], each)


def built(operator: KernelOperator, host: Host = ALONE) -> Kernel:
    return operator.build(MemoryStore(), host)


def fed(kernel: Kernel, port: int, element: Element) -> Iterator[Element]:
    """Feed an element to a kernel, and let it do all work that is left."""
    yield from feed(kernel, port, element)
    while kernel.has_work:
        yield from kernel.work_on()


@dataclass
class Answers:
    """What a kernel gave."""

    rows: list[pl.DataFrame] = field(default_factory=list)
    punctuation: list[list[Punctuation]] = field(default_factory=list)
    """After each element it was fed."""

    def multiset(self) -> Counter[tuple[Any, ...]]:
        return sum((multiset(each.rows()) for each in self.rows), Counter())


def again(
    operator: KernelOperator,
    given: Fed,
    keep: Keep = lambda _, rows: rows,
    host: Host = ALONE,
) -> Answers:
    """Feed a new kernel what another was fed, but for some rows."""
    kernel, answers = built(operator, host), Answers()
    for port, element in given:
        kept = keep(port, element) if isinstance(element, pl.DataFrame) else element
        nothing = isinstance(kept, pl.DataFrame) and not kept.height
        results = [] if nothing else list(fed(kernel, port, kept))
        answers.rows += [r for r in results if isinstance(r, pl.DataFrame) and r.height]
        answers.punctuation.append([r for r in results if isinstance(r, Punctuation)])
    return answers


# ---- traits ------------------------------------------------------------------------------------


def values(given: Fed, way: Sequence[str]) -> list[Any]:
    """All values of the columns of a way."""
    found: dict[Any, None] = {}
    for port, element in given:
        if isinstance(element, pl.DataFrame):
            found |= dict.fromkeys(element[way[port]].to_list())
    return list(found)


def only(way: Sequence[str], value: Any) -> Keep:
    return lambda port, rows: rows.filter(pl.col(way[port]).eq_missing(pl.lit(value)))


def check_passes(operator: KernelOperator, given: Fed) -> None:
    """A column that passes has the value of the columns it passes from."""
    for out, way in operator.traits.passes:
        for value in values(given, way)[:3]:
            for rows in again(operator, given, only(way, value)).rows:
                assert set(rows[out].to_list()) == {value}, (operator.title, out, way, rows)


PARTIALS = ("low",)
"""Operators that give several partials of a group, how many depends on what shares their table."""


def check_together(operator: KernelOperator, given: Fed) -> None:
    """Spread by a way, copies give what one gives."""
    if operator.name in PARTIALS:
        return
    whole = again(operator, given).multiset()
    for way in operator.traits.together:
        parts = (again(operator, given, only(way, value)) for value in values(given, way))
        found = sum((each.multiset() for each in parts), Counter())
        assert found == whole, (operator.title, way)


def check_alike(operator: KernelOperator, given: Fed, chance: random.Random) -> None:
    """Copies that hold other rows emit the same punctuation."""
    if not operator.traits.alike:
        return
    whole = again(operator, given).punctuation
    assert again(operator, given, lambda _, rows: rows.clear()).punctuation == whole, operator.title
    seed = chance.random()
    some = random.Random(seed)
    half = again(operator, given, lambda _, rows: rows.filter([some.random() < 0.5] * rows.height))
    assert half.punctuation == whole, operator.title


def check_rowwise(operator: KernelOperator, given: Fed) -> None:
    """Row by row it gives what it gives at once, and keeps nothing."""
    traits = operator.traits
    if traits.stateful:
        return
    kernel = built(operator)
    for port, element in given:
        list(fed(kernel, port, element))
        assert not kernel.store.rows, operator.title
    if traits.rowwise and not traits.checks:
        single = [
            (port, row)
            for port, element in given
            for row in (element.iter_slices(1) if isinstance(element, pl.DataFrame) else [element])
        ]
        assert again(operator, single).multiset() == again(operator, given).multiset()


def check_reads(operator: KernelOperator, given: Fed) -> None:
    """Columns that are not read may be empty."""
    reads = operator.traits.reads
    if reads is None or operator.name in PARTIALS:
        return

    def emptied(_: int, rows: pl.DataFrame) -> pl.DataFrame:
        gone = [name for name in rows.columns if name not in reads]
        return rows.with_columns(pl.lit(None, rows.schema[name]).alias(name) for name in gone)

    assert again(operator, given, emptied).multiset() == again(operator, given).multiset()


def check_combines(operator: KernelOperator, given: Fed) -> None:
    """Partial answers of copies, finished, are the answers of one; so are those from partials."""
    traits, kernel = operator.traits, built(operator)
    whole = again(operator, given).multiset()
    if traits.reduces:
        assert isinstance(kernel, Reducer)
        for _, element in given:
            if isinstance(element, pl.DataFrame):
                kernel.on_partials(kernel.reduced(element))
        assert _finished(kernel, given) == whole, operator.title
    if traits.combines and traits.alike:
        assert isinstance(kernel, Finisher)
        host, parts = Host(copies=2, in_part=True), []
        for copy in (0, 1):
            parts += again(operator, given, share(copy), host).rows
        found = multiset(kernel.finished(pl.concat(parts)).rows()) if parts else Counter()
        assert found == whole, operator.title


def _finished(kernel: Kernel, given: Fed) -> Counter[tuple[Any, ...]]:
    """What a kernel answers that has all its rows, once it is fed the rest."""
    rest = [(port, each) for port, each in given if not isinstance(each, pl.DataFrame)]
    results = [each for port, element in rest for each in fed(kernel, port, element)]
    rows = [multiset(each.rows()) for each in results if isinstance(each, pl.DataFrame)]
    return sum(rows, Counter())


def share(copy: int) -> Keep:
    """Every other row."""
    return lambda _, rows: rows.gather_every(2, copy)


def check_kernel(operator: KernelOperator) -> None:
    """What is reduced or put together has the functions for it."""
    traits, kernel = operator.traits, built(operator)
    assert not traits.reduces or isinstance(kernel, Reducer)
    assert not (traits.combines or traits.ordered) or isinstance(kernel, Finisher)
    assert not (traits.rowwise and traits.stateful)
    assert traits.releases_alike <= traits.ordered


EXAMPLES = settings(max_examples=max(2, settings.default.max_examples // 4))
rows = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=14
).map(lambda each: pl.DataFrame(each, schema=SCHEMA, orient="row"))
shapes = st.sampled_from(["out-of-order", "in-order"])


@pytest.mark.parametrize("name", QUERIES)
@EXAMPLES
@given(tables=st.tuples(rows, rows, rows), shape=shapes, seed=st.integers(0, 2**32))
def test_traits_hold_of_kernels(
    name: str, tables: tuple[pl.DataFrame, ...], shape: PlanShape, seed: int
) -> None:
    a, b, c = (stream(each, table) for each, table in zip("abc", tables, strict=True))
    plan, chance = compile_plan(QUERIES[name](a, b, c).node, shape), random.Random(seed)
    run = Run(plan, chance)
    for operator in plan.kernels:
        given = run.fed[operator.index]
        check_kernel(operator)
        check_passes(operator, given)
        check_together(operator, given)
        check_alike(operator, given, chance)
        check_rowwise(operator, given)
        check_reads(operator, given)
        check_combines(operator, given)


# ---- layouts -----------------------------------------------------------------------------------


def carried(plan: PhysicalPlan, stage: Stage, at: int) -> dict[int, set[str]]:
    """The columns of each operator in which a stage's rows have the value at a place of the key."""
    found = {
        edge.producer: {edge.key[at][0]} if edge.key is not None else set() for edge in stage.edges
    }
    for index in stage.operators:
        operator = plan.operators[index]
        inputs = [found[each] for each in operator.inputs]
        found[index] = {
            out
            for out, way in operator.traits.passes
            if all(name in columns for name, columns in zip(way, inputs, strict=True))
        }
    return found


def sound(plan: PhysicalPlan, layout: Layout) -> None:
    """Rows that an operator must bring together enter its stage with equal keys."""
    assert {index for each in layout.stages for index in each.operators} | set(layout.tail) >= {
        each.index for each in plan.kernels
    }
    for stage in layout.stages:
        keys = {len(edge.key) for edge in stage.edges if edge.key is not None}
        for at in range(max(keys, default=0)) if not stage.single else ():
            columns = carried(plan, stage, at)
            for index in stage.operators:
                operator = plan.operators[index]
                if not operator.traits.stateful or index == stage.combined:
                    continue
                assert any(
                    all(
                        name in columns[each]
                        for name, each in zip(way, operator.inputs, strict=True)
                    )
                    for way in operator.traits.together
                ), f"{operator.title} in stage {stage.number}"
        for index in stage.operators if not stage.single else ():
            operator = plan.operators[index]
            if operator.traits.stateful and index != stage.combined:
                spread = [edge for edge in stage.edges if _feeds(plan, stage, edge.producer, index)]
                assert all(edge.key for edge in spread), f"{operator.title} in {stage.number}"
    for index in layout.tail:
        assert plan.operators[index].traits.rowwise


def _feeds(plan: PhysicalPlan, stage: Stage, producer: int, index: int) -> bool:
    inputs = plan.operators[index].inputs
    return producer in inputs or any(
        _feeds(plan, stage, producer, each) for each in inputs if each in stage.operators
    )


@pytest.mark.parametrize("shape", ["out-of-order", "in-order"])
@pytest.mark.parametrize("name", QUERIES)
def test_layouts_bring_together_what_belongs_together(name: str, shape: PlanShape) -> None:
    """Each query alone, and with aggregates, joins, unions and order on top by any column."""
    query = QUERIES[name](*empty())
    plan = compile_plan(query.node, shape)
    sound(plan, lay_out(plan))
    for above in over(query):
        plan = compile_plan(above.node, shape)
        sound(plan, lay_out(plan))


def over(query: lw.Stream) -> Iterator[lw.Stream]:
    """Queries over a query, by each of its columns."""
    time = query.time
    if time is None or query.node.updates is not None or query.schema[time] != pl.Int64:
        return
    if query.node.progress[time].domain == ROWS:
        return
    yield query.order_by()
    others = {f"c{at}": name for at, name in enumerate(query.columns) if name != time}
    below, other = query.select(t=time, **others), stream("z", pl.DataFrame(schema=SCHEMA))
    for name in others:
        yield below.window(7).group_by(name).agg(number="count(*)")
        yield below.union(below).distinct("t", name)
        if below.node.schema[name] == pl.Int64:
            joined = below.join(other, on=[(name, "k")], within=3)
            yield joined
            yield joined.window(7).group_by(name).agg(number="count(*)")
            yield joined.window(7).group_by("v").agg(number="count(*)").order_by("window_end")
