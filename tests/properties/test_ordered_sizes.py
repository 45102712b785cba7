"""The buffers of an ordered join hold no more than the marks allow, after every step.

Rows wait only above the least mark of the inputs, results are held only above it, or above it less
the reach of the join where rows come out alone. The counts to compare with come from DuckDB, over
the rows that have come by each step.
"""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lowwater as lw
from lowwater.joins.ordered.ordered_join import HELD_BACK_BY, OrderedJoin
from lowwater.operators.kernel import ALONE
from lowwater.plan.physical.planner import compile_plan
from lowwater.state.store import MemoryStore
from lowwater.stream.element import BEGINNING, END_OF_TIME, End, Punctuation
from tests.properties.test_ordered import BANDS, ORDERS, elements, inputs
from tests.support.checked_run import feed

OUTER = {"left": ["a"], "right": ["b"], "full": ["a", "b"], "semi": ["a"], "anti": ["a"]}
FEW = settings(max_examples=max(1, settings.default.max_examples // 4))


class Watched:
    """An ordered join, its sizes after each step, and the rows and marks by then."""

    def __init__(self, query: lw.Stream, data: Any, names: list[str], wavers: bool):
        plan = compile_plan(query._node)
        build = plan.result.build
        assert build is not None
        self.kernel = build(MemoryStore(), ALONE)
        assert isinstance(self.kernel, OrderedJoin)
        self.wavers, self.names, self.marks = wavers, names, [BEGINNING for _ in names]
        self.rows: list[tuple[str, int, int, int]] = []
        self.steps: list[dict[str, int]] = []
        for step, (port, element) in enumerate(elements(plan, data)):
            if wavers:
                self.kernel._strategy.mode = data.draw(st.sampled_from(ORDERS[:2]))  # type: ignore[assignment]
            feed(self.kernel, port, element)
            self._note(step, port, element)

    def _note(self, step: int, port: int, element: Any) -> None:
        if isinstance(element, pl.DataFrame):
            rows = element.select(pl.col("ts").to_physical(), "k").rows()
            self.rows += [(self.names[port], ts, k, step) for ts, k in rows]
        elif isinstance(element, Punctuation) and element.attributes == ("ts",):
            self.marks[port] = element.values[0]
        elif isinstance(element, End):
            self.marks[port] = END_OF_TIME
        least, kernel = min(self.marks), self.kernel
        assert isinstance(kernel, OrderedJoin)
        sizes = {f"w{at}": each.rows for at, each in enumerate(kernel._waiting)}
        sorts = int(kernel._mode != "filter-order")
        self.steps.append(
            {"step": step, "least": least, "held": kernel._held.rows, "sorts": sorts, **sizes}
        )
        name = kernel.metrics().get(HELD_BACK_BY)
        assert (name is None) == (not kernel._open or not sum(sizes.values()) + kernel._held.rows)
        if name is not None:
            assert self.marks[[f"s{at}" for at in range(len(self.names))].index(name)] == least

    def counts(self, sql: str) -> list[tuple[Any, ...]]:
        """What a query gives over the rows and the steps."""
        schema = {"name": pl.String, "ts": pl.Int64, "k": pl.Int64, "step": pl.Int64}
        rows = pl.DataFrame(self.rows, schema=schema, orient="row")
        with duckdb.connect() as connection:
            for name in self.names:
                connection.register(name, rows.filter(pl.col("name") == name).to_arrow())
            connection.register("steps", pl.DataFrame(self.steps).to_arrow())
            return connection.execute(sql).fetchall()

    def check_waiting(self) -> None:
        for port, name in enumerate(self.names):
            sql = f"""SELECT w{port}, sorts, count(r.ts) FROM steps s LEFT JOIN {name} r
                      ON r.step <= s.step AND r.ts > least GROUP BY 1, 2, s.step"""
            for waiting, sorts, above in self.counts(sql):
                assert waiting <= (above if sorts else 0)
                assert self.wavers or waiting == (above if sorts else 0)

    def check_held(self, pairs: str, reach: int, alone: list[str]) -> None:
        """``pairs`` gives the time and the step of every pair; rows of ``alone`` come out alone."""
        parts = [pairs, *(f"SELECT ts AS time, step AS found FROM {name}" for name in alone)]
        sql = f"""WITH results AS ({" UNION ALL ".join(parts)})
                  SELECT held, sorts, count(*) FILTER (time >= least - {reach}),
                         count(*) FILTER (time > least)
                  FROM steps LEFT JOIN results ON found <= step GROUP BY held, sorts, step"""
        for held, sorts, most, surely in self.counts(sql):
            assert held <= most
            assert sorts or alone or held >= surely


@pytest.mark.parametrize("order", [*ORDERS[:2], "either"])
@FEW
@given(data=st.data())
def test_no_more_is_held_than_the_marks_allow(order: Any, data: Any) -> None:
    one, two = inputs(data)
    (before, after), how = data.draw(BANDS), data.draw(st.sampled_from(["inner", *OUTER]))
    mode = "sync-filter" if order == "either" else order
    query = one.stream.join(two.stream, on="k", within=(before, after), how=how, order=mode)
    run = Watched(query, data, ["a", "b"], order == "either")
    run.check_waiting()
    pairs = f"""SELECT greatest(a.ts, b.ts) AS time, greatest(a.step, b.step) AS found
                FROM a JOIN b ON a.k = b.k
                AND b.ts BETWEEN a.ts - {before} AND a.ts + {after}"""
    reach = 0 if how == "inner" else max(before, after, 0)
    run.check_held(pairs, reach, OUTER.get(how, []))


@pytest.mark.parametrize("order", ORDERS[:2])
@FEW
@given(data=st.data())
def test_no_more_is_held_of_many_inputs(order: Any, data: Any) -> None:
    found, window = inputs(data, 3), data.draw(st.integers(0, 6))
    query = lw.join([each.stream for each in found], on="k", within=window, order=order)
    run = Watched(query, data, ["a", "b", "c"], False)
    run.check_waiting()
    latest, earliest = "greatest(a.ts, b.ts, c.ts)", "least(a.ts, b.ts, c.ts)"
    run.check_held(
        f"""SELECT {latest} AS time, greatest(a.step, b.step, c.step) AS found
            FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND {latest} - {earliest} <= {window}""",
        0,
        [],
    )
