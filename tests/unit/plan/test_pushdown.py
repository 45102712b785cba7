"""Pushdown: which columns of a DataFrame travel to Python, and which conditions Spark computes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.engines.spark.driver.pushdown import Pushed, push_down
from lowwater.operators.rowwise import Select
from lowwater.plan.physical.operator import KernelOperator
from lowwater.plan.physical.planner import compile_plan
from lowwater.sources.spark import SparkFrame
from lowwater.state.store import MemoryStore

FIELDS = {"ts": "timestamp_ntz", "k": "long", "v": "double", "url": "string", "name": "string"}
URL = "((`url` COLLATE UTF8_BINARY) LIKE 'a%')"


class Columns:
    """A streaming DataFrame, as far as a plan looks at it."""

    isStreaming = True
    schema = SimpleNamespace(
        jsonValue=lambda: {"fields": [{"name": n, "type": t} for n, t in FIELDS.items()]}
    )


def stream(**options: Any) -> lw.Stream:
    return lw.stream(SparkFrame(Columns()), name="s", time="ts", **{"late": "drop", **options})


def pushed(query: lw.Stream, whole_rows: bool = False) -> tuple[Pushed, dict[str, str]]:
    found = push_down(compile_plan(query.node), whole_rows)
    (columns,) = found.columns.values()
    return found, dict(columns)


def counted(rows: lw.Stream) -> lw.Stream:
    return rows.window("1 minute").group_by("k").agg(n="count(*)")


CASES: dict[str, tuple[Callable[[lw.Stream], lw.Stream], set[str], list[str]]] = {
    "a text that only a filter reads": (
        lambda s: counted(s.where("url LIKE 'a%' AND v > 1")),
        {"ts", "k", "v"},
        [URL],
    ),
    "a text that two filters read": (
        lambda s: counted(s.where("url LIKE 'a%'").where("(name = 'x') AND (url IS NOT NULL)")),
        {"ts", "k"},
        [
            URL,
            "((`name` COLLATE UTF8_BINARY) = 'x')",
            "(NOT ((`url` COLLATE UTF8_BINARY) IS NULL))",
        ],
    ),
    "a text that is in the answer": (
        lambda s: s.where("url LIKE 'a%'").select("ts", "url"),
        {"ts", "url"},
        [],
    ),
    "a text that another condition reads": (
        lambda s: counted(s.where("url LIKE 'a%' AND length(url) > 3")),
        {"ts", "k", "url"},
        [],
    ),
    "one of two texts": (
        lambda s: counted(s.where("url LIKE 'a%' AND upper(name) = 'X'")),
        {"ts", "k", "name"},
        [URL],
    ),
    "a text that a column is computed from": (
        lambda s: s.where("url LIKE 'a%'").select("ts", n="length(url)"),
        {"ts", "url"},
        [],
    ),
    "no text": (lambda s: counted(s.where("v > 1 OR k = 3")), {"ts", "k", "v"}, []),
    "every column": (lambda s: s.where("url LIKE 'a%'"), set(FIELDS), []),
    "no filter": (counted, {"ts", "k"}, []),
    "two readers": (
        lambda s: s.where("url LIKE 'a%'").select("ts", "k").union(s.select("ts", "k")),
        set(FIELDS),
        [],
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_a_text_that_only_conditions_read_is_left_out(case: str) -> None:
    query, kept, conditions = CASES[case]
    _, columns = pushed(query(stream()))
    assert {name for name in columns if name in FIELDS} == kept
    assert [text for name, text in columns.items() if name not in FIELDS] == conditions


def test_rows_that_a_side_output_shows_are_whole() -> None:
    _, columns = pushed(counted(stream(late="side").where("url LIKE 'a%'")), whole_rows=True)
    assert set(columns) == set(FIELDS)


def test_a_filter_uses_what_was_computed_and_fails_where_it_did() -> None:
    query = counted(stream().where("url LIKE 'a%' AND 10 / CAST(v AS BIGINT) > 1 AND k % 2 = 0"))
    found, columns = pushed(query)
    assert set(columns) == {"ts", "k", "v", "__computed0"}
    (chosen,) = (
        each for each in found.plan.kernels if each.computation and each.computation.filters
    )
    assert isinstance(chosen, KernelOperator)
    kernel = chosen.build(MemoryStore(), 0)
    assert isinstance(kernel, Select)
    rows = pl.DataFrame(
        {
            "ts": [1, 2, 3],
            "k": [2, 2, 4],
            "v": [3.0, None, 1e30],
            "__computed0": [True, True, False],
        }
    )
    (kept,) = kernel.on_chunk(0, rows)  # the last row's v fits no BIGINT; its text is not asked for
    assert isinstance(kept, pl.DataFrame)
    assert kept["ts"].to_list() == [1]
