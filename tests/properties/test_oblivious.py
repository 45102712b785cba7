"""Joins without a window: nothing is lost where disorder is known, nothing is made up anywhere."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lowwater as lw
from lowwater.joins.oblivious import (
    disorder,
    estimates,
    memory_manager,
    oblivious_join,
    read_ahead,
    stored_rows,
)
from lowwater.joins.oblivious.oblivious_join import ObliviousJoin
from lowwater.operators.kernel import ALONE, Kernel
from lowwater.plan.physical.planner import compile_plan
from lowwater.state.store import MemoryStore
from lowwater.stream.element import Punctuation
from tests.support.checked_run import CheckedRun
from tests.support.driven_join import Driven
from tests.support.local_spark import LocalSpark
from tests.support.oracle import answer, table_rows

AHEAD = st.sampled_from([None, "auto", 0, 1, 4, 20, "100 B", "2 kB"])
"""Rows on disk that are read before they are due; the default among them."""
STRATEGIES = st.sampled_from(["plain", "msf", "dbf", "hybrid"])
FEWER = settings(max_examples=max(1, settings.default.max_examples // 2))


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """What decides only what things cost is made small, so that small streams go through it."""
    sizes: list[tuple[Any, str, Any]] = [
        (stored_rows, "PAGE_ROWS", 3),
        (memory_manager, "PAGE_ROWS", 3),
        (read_ahead, "FIRST", 3),
        (stored_rows, "LEAST_ROWS", 2),
        (memory_manager, "ROUND_TRIPS", 0),
        (disorder, "START", 6),
        (estimates, "FEW", 3),
        (disorder, "LIMIT", 16),
    ]
    with ExitStack() as stack:
        for module, name, value in sizes:
            stack.enter_context(mock.patch.object(module, name, value))
        yield


def scrambling(keys: list[int]) -> int:
    """Definition 2.2, word by word."""
    pairs = (
        later - earlier
        for later, one in enumerate(keys)
        for earlier, two in enumerate(keys[:later])
        if one <= two
    )
    return max(pairs, default=0)


@dataclass(frozen=True)
class Input:
    """A stream of which its disorder may be known."""

    name: str
    rows: pl.DataFrame

    def stream(self, known: bool) -> lw.Stream:
        keys = self.rows["epoch"].to_list()
        most = max(Counter(keys).values())
        given = {"disorder": scrambling(keys), "multiplicity": most} if known else {}
        promise = lw.unpromised(**given)
        return lw.stream(self.rows, name=self.name, time="epoch", progress=promise)


@st.composite
def inputs(draw: Any, number: int, most: int = 30) -> list[Input]:
    """Streams over about the same values, each with disorder and repetitions of its own."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    span, found = draw(st.integers(1, most)), []
    for at in range(number):
        many, moved = draw(st.sampled_from([0.5, 1, 1, 2])), draw(st.integers(0, 6))
        keys = sorted(chance.choices(range(span), k=max(1, round(span * many))))
        order = sorted(range(len(keys)), key=lambda place: place + chance.randint(0, moved))
        rows = {
            "epoch": [keys[place] for place in order],
            "k": [chance.randint(0, 1) for _ in order],
            "v": list(range(len(order))),
        }
        schema = dict.fromkeys(rows, pl.Int64)
        found.append(Input(f"s{at}", pl.DataFrame(rows, schema=schema)))
    return found


def all_results(found: list[Input], also: str = "", key: bool = False) -> Counter[Any]:
    first, *rest = (each.name for each in found)
    columns = [f"{first}.*", *(f"{name}.{'v' if key else 'k, ' + name + '.v'}" for name in rest)]
    equal = [f"{first}.epoch = {name}.epoch" for name in rest]
    equal += [f"{first}.k = {name}.k" for name in rest] if key else []
    equal += [also] if also else []
    tables = ", ".join([first, *rest])
    sql = f"SELECT {', '.join(columns)} FROM {tables} WHERE {' AND '.join(equal)}"
    return answer(sql, {each.name: each.rows for each in found})


def ordered(run: CheckedRun) -> bool:
    """Whether results left in order of what was joined on."""
    chunks = [each["epoch"] for each in run.elements if isinstance(each, pl.DataFrame)]
    return not chunks or pl.concat(chunks).is_sorted()


def ahead(draw: Any, strategy: str) -> dict[str, Any]:
    """The option that says how many rows are read ahead, where rows can be on disk."""
    return {"read_ahead": draw(AHEAD)} if strategy in ("dbf", "hybrid", "auto") else {}


# ---- disorder that is known ----------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["plain", "msf", "dbf", "hybrid"])
@given(data=st.data())
def test_with_disorder_known_every_result_is_found(strategy: Any, data: Any) -> None:
    """Whatever the disorder, the multiplicity, the lag between inputs and the relief are."""
    number = data.draw(st.integers(2, 4))
    found = data.draw(inputs(number, 90 // number**2))
    key = data.draw(st.booleans())
    where, also = data.draw(st.sampled_from([(None, ""), ("v <= v_2", "s0.v <= s1.v")]))
    on = ["epoch", "k"] if key else ["epoch"]
    given_ = ahead(data.draw, strategy)
    streams = [each.stream(True) for each in found]
    query = lw.join(streams, on, where=where, strategy=strategy, **given_)
    run = CheckedRun(query, data.draw)
    assert table_rows(run.results()) == all_results(found, also, key)
    assert ordered(run) or strategy in ("plain", "dbf")


@FEWER
@given(data=st.data())
def test_joins_of_joins_find_every_result(data: Any) -> None:
    """What comes out of a join is scrambled by no more than Theorem 3.1 says."""
    found = data.draw(inputs(4, 10))
    one, two, three, four = (each.stream(True) for each in found)
    strategy = data.draw(STRATEGIES)
    left = one.join(two, on="epoch", suffix="_2", strategy=strategy)
    right = three.join(four, on="epoch", suffix="_2", strategy=strategy)
    query = left.join(right.select("epoch", k3="k", v3="v", k4="k_2", v4="v_2"), on="epoch")
    run = CheckedRun(query, data.draw)
    assert table_rows(run.results()) == all_results(found)


@FEWER
@given(data=st.data())
def test_what_follows_the_join_is_exact_and_does_not_wait_for_the_end(data: Any) -> None:
    found = data.draw(inputs(2))
    streams = [each.stream(True) for each in found]
    joined = streams[0].join(streams[1], on="epoch", strategy=data.draw(STRATEGIES))
    query = joined.window("4 seconds").group_by().agg(n="count(*)")
    sql = """SELECT s0.epoch // 4 * 4 AS a, a + 4, count(*) FROM s0 JOIN s1 USING (epoch)
             GROUP BY a"""
    expected = answer(sql, {each.name: each.rows for each in found})
    assert table_rows(CheckedRun(query, data.draw).results()) == expected


@settings(max_examples=max(1, settings.default.max_examples // 3))
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_spread_over_buckets_every_result_is_found(data: Any, seed: int) -> None:
    found = data.draw(inputs(3, 16))
    strategy = data.draw(STRATEGIES)
    streams, given_ = [each.stream(True) for each in found], ahead(data.draw, strategy)
    query = lw.join(streams, "epoch", strategy=strategy, **given_)
    for buckets in (1, 3):
        run = LocalSpark(query, seed, buckets, "out-of-order")
        assert table_rows(run.results()) == all_results(found)


@pytest.mark.parametrize("strategy", ["dbf", "hybrid"])
@pytest.mark.parametrize("portions", [False, True], ids=["at once", "in portions"])
@given(data=st.data())
def test_any_read_ahead_gives_the_same_results_at_every_step(
    strategy: str, portions: bool, data: Any
) -> None:
    """Rows on disk are read when they are due at the latest, whenever they are read before."""
    frames = [each.rows for each in data.draw(inputs(2, 40))]
    known = [scrambling(each["epoch"].to_list()) for each in frames]
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    runs = [
        Driven(
            frames,
            disorder=known,
            portions=portions,
            options={"strategy": strategy, "read_ahead": rows},
        )
        for rows in (0, 2, 1_000, "100 B", "auto")
    ]
    places = [0, 0]
    while open_ := [at for at in (0, 1) if places[at] < frames[at].height]:
        port, many = chance.choice(open_), chance.randint(1, 9)
        for run in runs:
            run.push(port, frames[port][places[port] : places[port] + many])
        places[port] += many
        assert len({run.results for run in runs}) == 1
    for run in runs:
        run.end()
        assert run.results == run.all_results


# ---- disorder that is measured, memory that is limited -----------------------------------------


class Watched(CheckedRun):
    """A run that looks at the join after each step."""

    def __init__(self, query: lw.Stream, draw: Any, memory: int | None):
        self._allowed = memory
        super().__init__(query, draw)

    def _emit_all(self, index: int, elements: Any) -> None:
        super()._emit_all(index, elements)
        kernel: Kernel | None = self._kernels.get(index)  # None for a source
        if isinstance(kernel, ObliviousJoin):
            if self._allowed is not None:
                assert kernel._stored.memory <= self._allowed
            kernel.about()


@pytest.mark.parametrize("number", [2, 3])
@given(data=st.data())
def test_whatever_is_lost_nothing_is_made_up_and_promises_are_kept(number: int, data: Any) -> None:
    found = data.draw(inputs(number, 40))
    memory = data.draw(st.one_of(st.none(), st.integers(200, 2_000)))
    strategy = data.draw(st.one_of(STRATEGIES, st.just("auto")))
    known = data.draw(st.booleans())
    streams = [each.stream(known) for each in found]
    given_ = ahead(data.draw, strategy)
    query = lw.join(streams, "epoch", memory=memory, strategy=strategy, accuracy=0.9, **given_)
    run = Watched(query, data.draw, memory)
    assert not table_rows(run.results()) - all_results(found)
    assert ordered(run) or strategy not in ("msf", "hybrid")


@given(found=inputs(2, 60), seed=st.integers(0, 2**32))
def test_with_promises_and_measures_no_more_is_kept_than_with_either(
    found: list[Input], seed: int
) -> None:
    """The same steps three times: by promises alone, by measure alone, by both.

    A join that measures alone also holds rows that may be a restart, and measures them later; none
    does so here, so that all measure the same rows.
    """
    chance, held = random.Random(seed), dict[str, list[int]]()
    steps = sorted((chance.random(), at) for at, each in enumerate(found) for _ in each.rows.rows())
    for kind in ("promises", "measure", "both"):
        stores = [lw.stream(each.rows, name=each.name, time="epoch") for each in found]
        accuracy = None if kind == "promises" else 0.9
        plan = compile_plan(stores[0].join(stores[1], on="epoch", accuracy=accuracy)._node)
        store = MemoryStore()
        kernel = plan.result.build(store, ALONE)
        places, held[kind] = [0, 0], []
        with mock.patch.object(oblivious_join, "LAZY", 10**9):
            for _, port in steps:
                at, rows = places[port], found[port].rows
                kernel.on_chunk(port, rows[at : at + 1])
                rest = rows["epoch"][at + 1 :].min()
                if kind != "measure" and rest is not None:
                    kernel.on_punctuation(port, Punctuation.linear("epoch", rest))
                places[port] += 1
                held[kind].append(store.rows)
    for promised, measured, both in zip(*held.values(), strict=True):
        assert both <= min(promised, measured)


# ---- what is lost is counted -------------------------------------------------------------------


class Changing(Driven):
    """A join whose strategy changes before any element, by switch or by restart."""

    def run(self, draw: Any, switches: bool) -> None:
        places = [0] * len(self.inputs)
        while open_ := [at for at, each in enumerate(self.inputs) if places[at] < each.height]:
            if switches and draw(st.booleans()):
                mode = draw(st.sampled_from(["plain", "msf", "dbf", "hybrid"]))
                change = draw(st.sampled_from([self.switch, self.restarted]))
                change(mode)
            port, many = draw(st.sampled_from(open_)), draw(st.integers(1, 6))
            self.push(port, self.inputs[port][places[port] : places[port] + many])
            places[port] += many
            if self.batches and draw(st.booleans()):
                self.settle()
        self.end()

    def restarted(self, mode: Any) -> None:
        if self.kernel.has_work:
            self.settle()
        self.restart(strategy=mode)


@pytest.mark.parametrize("batches", [False, True], ids=["rows", "batches"])
@given(data=st.data())
def test_every_result_is_found_or_counted_as_lost(batches: bool, data: Any) -> None:
    """Whatever is measured, however little memory there is, whenever the strategy changes."""
    frames = [each.rows for each in data.draw(inputs(data.draw(st.integers(2, 3)), 40))]
    memory = data.draw(st.one_of(st.none(), st.integers(200, 2_000)))
    key = ("epoch", "k") if data.draw(st.booleans()) else ("epoch",)
    given_ = {"memory": memory, "strategy": data.draw(STRATEGIES), "accuracy": 0.9}
    run = Changing(frames, key, batches=batches, options=given_)
    run.run(data.draw, data.draw(st.booleans()))
    assert run.accounted == pytest.approx(run.all_results, rel=1e-9)  # it is a sum of floats
    assert run.about["results lost margin"] == 0


@pytest.mark.parametrize("batches", [False, True], ids=["rows", "batches"])
@given(data=st.data())
def test_with_disorder_known_no_change_of_strategy_loses_anything(batches: bool, data: Any) -> None:
    """In any order of the inputs, which are behind each other by as much as is drawn."""
    found = data.draw(inputs(data.draw(st.integers(2, 3)), 40))
    frames = [each.rows for each in data.draw(st.permutations(found))]
    known = [scrambling(each["epoch"].to_list()) for each in frames]
    run = Changing(frames, disorder=known, batches=batches, options={"strategy": "plain"})
    run.run(data.draw, True)
    assert run.results == run.all_results
    assert run.accounted == pytest.approx(run.all_results, rel=1e-9)


@pytest.mark.parametrize("batches", [False, True], ids=["rows", "batches"])
@given(data=st.data())
def test_with_a_share_that_changes_it_is_obeyed_and_every_result_is_accounted_for(
    batches: bool, data: Any
) -> None:
    """A share of a budget, taken away or given between any two steps, also after a restart."""
    frames = [each.rows for each in data.draw(inputs(data.draw(st.integers(2, 3)), 40))]
    given_ = {"strategy": data.draw(st.one_of(STRATEGIES, st.just("auto"))), "accuracy": 0.9}
    run = Changing(frames, batches=batches, budget=2_000, options=given_)
    share, places = 2_000, [0] * len(frames)
    while open_ := [at for at, each in enumerate(frames) if places[at] < each.height]:
        if data.draw(st.booleans()):
            share = data.draw(st.integers(0, 2_000))
            run.take(run.kernel.take_share(share))
        port, many = data.draw(st.sampled_from(open_)), data.draw(st.integers(1, 6))
        run.push(port, frames[port][places[port] : places[port] + many])
        places[port] += many
        if not batches or data.draw(st.booleans()):
            run.settle()
            assert run.kernel.memory_used <= share
        if data.draw(st.booleans()):
            run.settle()
            run.restart()
    need = run.kernel.memory_need
    assert need is None or (need.least >= 0 and 0 <= need.expected(share) <= 0.9)
    run.end()
    assert run.accounted == pytest.approx(run.all_results, rel=1e-9)


@settings(max_examples=max(1, settings.default.max_examples // 3))
@given(data=st.data(), seed=st.integers(0, 2**32))
@pytest.mark.filterwarnings("ignore::lowwater.StreamWarning")
def test_joins_that_share_any_budget_make_nothing_up(data: Any, seed: int) -> None:
    """Two joins, known or measured; all results are found if the disorder is known and fits."""
    found, known = data.draw(inputs(3, 20)), data.draw(st.booleans())
    one, two, three = (each.stream(known) for each in found)
    query = one.join(two, on="epoch", suffix="_2").join(three, on="epoch", suffix="_3")
    small, rows = data.draw(st.integers(1, 3_000)), data.draw(st.integers(1, 20))
    expected = all_results(found)
    for memory in (small, 10**6):
        here = table_rows(pl.DataFrame(query.collect(memory=memory, chunk_rows=rows)))
        spread = table_rows(LocalSpark(query, seed, 2, memory=memory).results())
        assert not (here - expected) + (spread - expected)
        if known and memory > small:
            assert here == spread == expected
