"""Joins that measure their inputs: outer, semi and anti joins, and joins of near times."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lowwater as lw
from lowwater.joins.oblivious.oblivious_join import ObliviousJoin
from tests.properties.test_oblivious import (  # noqa: F401
    STRATEGIES,
    Input,
    Watched,
    inputs,
    ordered,
    small,
)
from tests.support.checked_run import CheckedRun
from tests.support.local_spark import LocalSpark
from tests.support.oracle import answer, table_rows

How = Literal["inner", "left", "right", "full", "semi", "anti"]
KINDS: list[How] = ["inner", "left", "right", "full", "semi", "anti"]
OUTER: list[How] = ["left", "right", "full"]
FEW = settings(max_examples=max(1, settings.default.max_examples // 4))
REACHES = st.sampled_from([None, (0, 0), (2, 2), (0, 3), (3, 0), (-1, 4), (4, -2), (-2, 2)])


class Case:
    """A join of two inputs: its query and the same in SQL."""

    def __init__(self, draw: Any, how: How, most: int = 40, reach: Any = REACHES):
        self.how, self.found = how, draw(inputs(2, most))
        self.reach, self.key = draw(reach), draw(st.booleans())
        self.where = draw(st.sampled_from([None, None, "v <= v_2"]))

    def query(self, known: bool, **options: Any) -> lw.Stream:
        left, right = (each.stream(known) for each in self.found)
        on = ["k"] if self.key else []
        within = None
        if self.reach is None:
            on = ["epoch", *on]
        else:
            within = tuple(f"{each} seconds" for each in self.reach)
        return left.join(
            right, on, within=within, where=self.where, how=self.how, suffix="_2", **options
        )

    @property
    def condition(self) -> str:
        before, after = self.reach or (0, 0)
        parts = [f"b.epoch BETWEEN a.epoch - {before} AND a.epoch + {after}"]
        parts += ["a.k = b.k"] if self.key else []
        parts += ["a.v <= b.v"] if self.where else []
        return " AND ".join(parts)

    def answer(self, sql: str) -> Counter[Any]:
        return answer(sql, {"a": self.found[0].rows, "b": self.found[1].rows})

    def all_results(self, how: How | None = None) -> Counter[Any]:
        how = how or self.how
        if how in ("semi", "anti"):
            no = "NOT " if how == "anti" else ""
            return self.answer(
                f"SELECT a.* FROM a WHERE {no}EXISTS (SELECT 1 FROM b WHERE {self.condition})"
            )
        epoch, k = "a.epoch", "a.k"
        rest = [] if self.reach is None else ["b.epoch"]
        rest += [] if self.key else ["b.k"]
        if self.reach is None:
            epoch = "coalesce(a.epoch, b.epoch)"
        if self.key:
            k = "coalesce(a.k, b.k)"
        columns = ", ".join([epoch, k, "a.v", *rest, "b.v"])
        return self.answer(f"SELECT {columns} FROM a {how} JOIN b ON {self.condition}")

    def pairs(self) -> int:
        return sum(self.all_results("inner").values())

    def alone(self, side: str) -> int:
        """The rows of a side that have a partner."""
        other = "b" if side == "a" else "a"
        sql = f"SELECT {side}.v FROM {side} WHERE NOT EXISTS (SELECT 1 FROM {other}"
        return self.answer(f"{sql} WHERE {self.condition})")


def join_of(run: CheckedRun) -> ObliviousJoin:
    (found,) = (each for each in run._kernels.values() if isinstance(each, ObliviousJoin))
    return found


# ---- disorder that is known ----------------------------------------------------------------


@pytest.mark.parametrize("how", KINDS)
@FEW
@given(data=st.data())
def test_with_disorder_known_all_rows_are_right(how: How, data: Any) -> None:
    """Every pair is found and every row without a partner is told, whatever the relief is."""
    case = Case(data.draw, how)
    strategy = data.draw(STRATEGIES)
    run = CheckedRun(case.query(True, strategy=strategy), data.draw)
    assert table_rows(run.results()) == case.all_results()
    about = join_of(run).about()
    assert about["accuracy"] == 1
    if how != "inner":
        assert about["unmatched accuracy"] == 1
        assert about["unmatched rows early"] == about["unmatched rows left out"] == 0
    if case.reach is None and how != "full":
        assert ordered(run) or strategy in ("plain", "dbf")


@FEW
@given(data=st.data())
def test_windows_after_an_outer_join_are_exact_and_do_not_wait_for_the_end(data: Any) -> None:
    case = Case(data.draw, data.draw(st.sampled_from(["left", "semi", "anti"])))
    query = case.query(True, strategy=data.draw(STRATEGIES))
    counted = query.window("4 seconds", on="epoch").agg(n="count(*)")
    found = CheckedRun(counted, data.draw)
    expected: Counter[Any] = Counter()
    windows: Counter[int] = Counter()
    for row, many in case.all_results().items():
        windows[row[0] // 4 * 4] += many
    for start, many in windows.items():
        expected[start, start + 4, many] += 1
    assert table_rows(found.results()) == expected


@FEW
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_spread_over_buckets_all_rows_are_right(data: Any, seed: int) -> None:
    case = Case(data.draw, data.draw(st.sampled_from(KINDS)), 20)
    query = case.query(True, strategy=data.draw(STRATEGIES))
    for buckets in (1, 3):
        run = LocalSpark(query, seed, buckets, "out-of-order")
        assert table_rows(run.results()) == case.all_results()


# ---- disorder that is measured, memory that is limited -----------------------------------------


@pytest.mark.parametrize("how", KINDS)
@FEW
@given(data=st.data())
def test_what_is_lost_or_told_wrongly_is_counted(how: How, data: Any) -> None:
    """Every row of an outer side comes out, and what it was told is counted as it turns out."""
    case = Case(data.draw, how)
    memory = data.draw(st.one_of(st.none(), st.integers(300, 2_000)))
    strategy = data.draw(st.one_of(STRATEGIES, st.just("auto")))
    query = case.query(data.draw(st.booleans()), memory=memory, strategy=strategy, accuracy=0.9)
    run = Watched(query, data.draw, memory)
    results = run.results()
    about = join_of(run).about()
    if case.where is None and how not in ("semi", "anti"):
        found = about["results found"] + about["results lost"]
        assert found == pytest.approx(case.pairs(), rel=1e-9)
    if how == "inner":
        assert not table_rows(results) - case.all_results()
        return
    assert about["unmatched rows left out"] == 0
    if how == "semi":
        assert not table_rows(results) - case.all_results()
        right = len(case.found[0].rows) - results.height - sum(case.alone("a").values())
        assert case.where or about["unmatched rows contradicted"] == right
        return
    told = Counter[bool]()
    for side, own, other in (("a", "v", "v_2"), ("b", "v_2", "v")):
        if how not in ("full", {"a": "left", "b": "right"}[side]) and (how, side) != ("anti", "a"):
            continue
        alone = results if how == "anti" else results.filter(pl.col(other).is_null())
        both = pl.col(own).is_not_null() & pl.col(other).is_not_null()
        matched = results.clear() if how == "anti" else results.filter(both)
        came, expected = alone[own].to_list(), case.alone(side)
        assert len(set(came)) == len(came)
        rows = case.found[0 if side == "a" else 1].rows
        assert set(came) >= {each for (each,) in expected}
        if how != "anti":
            assert set(came) | set(matched[own]) == set(rows["v"])
            assert not set(came) & set(matched[own])
        told += Counter((each,) in expected for each in came)
    assert about["unmatched rows"] == told.total()
    if case.where is None:
        assert about["unmatched rows contradicted"] == told[False]
        assert about["unmatched accuracy"] == pytest.approx(
            told[True] / told.total() if told else 1
        )


@FEW
@given(data=st.data())
def test_rows_below_what_a_window_used_are_left_out_and_counted(data: Any) -> None:
    case = Case(data.draw, "left")
    query = case.query(False, strategy=data.draw(STRATEGIES), accuracy=0.9)
    counted = query.where("v >= 0").window("4 seconds", on="epoch").agg(n="count(v_2)")
    run = CheckedRun(counted, data.draw)
    run.results()
    about = join_of(run).about()
    whole = about["unmatched rows"] + about["unmatched rows left out"]
    assert whole >= sum(case.alone("a").values())
