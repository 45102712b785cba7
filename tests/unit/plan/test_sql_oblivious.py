"""Query texts over streams that promise nothing: one join of all sources, or none."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.joins.oblivious.options import Oblivious
from lowwater.joins.oblivious.read_ahead import ReadAhead
from lowwater.plan.nodes import MultiJoinNode, Node


def streams(**progress: Any) -> dict[str, lw.Stream]:
    frame = pl.DataFrame({"epoch": [1], "k": [1], "v": [1]})
    return {
        name: lw.stream(
            frame, name=name, time="epoch", progress=progress.get(name, lw.unpromised())
        )
        for name in ("A", "B", "C")
    }


def joins(text: str, **progress: Any) -> list[MultiJoinNode]:
    """The joins of many inputs of a query, from the result down."""
    found: list[MultiJoinNode] = []

    def walk(node: Node) -> None:
        if isinstance(node, MultiJoinNode):
            found.append(node)
        for each in node.inputs:
            walk(each)

    walk(lw.sql(text, **streams(**progress))._node)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM A, B, C WHERE A.epoch = B.epoch AND B.epoch = C.epoch",
        "SELECT * FROM A, B, C WHERE C.epoch = A.epoch AND (B.epoch = C.epoch)",
        "SELECT * FROM A JOIN B ON A.epoch = B.epoch JOIN C ON C.epoch = A.epoch",
        "SELECT * FROM A JOIN B USING (epoch) JOIN C USING (epoch)",
        "SELECT * FROM A CROSS JOIN B, C WHERE A.epoch = B.epoch AND B.epoch = C.epoch",
    ],
)
def test_all_sources_are_joined_at_once(text: str) -> None:
    (join,) = joins(text)
    assert join.on == (("A.epoch", "B.epoch", "C.epoch"),)
    assert join.oblivious == Oblivious(disorder=(None, None, None))
    assert join.residual is None


def test_columns_equal_in_all_are_keys_and_the_rest_is_checked() -> None:
    (join,) = joins(
        """SELECT A.v FROM A, B, C WHERE A.epoch = B.epoch AND B.epoch = C.epoch AND A.k = C.k
           AND C.k = B.k AND A.v = B.v AND A.v < C.v AND B.v > 3"""
    )
    assert set(join.on) == {("A.epoch", "B.epoch", "C.epoch"), ("A.k", "B.k", "C.k")}
    assert join.times == ("A.epoch", "B.epoch", "C.epoch")
    assert join.residual is not None
    assert join.residual.text == '"A.v" = "B.v" AND "A.v" < "C.v"'


def test_an_equality_through_another_column_is_not_lost() -> None:
    """A.epoch = B.k and B.k = C.epoch say less of B.epoch than that it is equal to B.k."""
    (join,) = joins(
        "SELECT A.v FROM A, B, C WHERE A.epoch = B.epoch AND B.epoch = C.epoch AND C.epoch = B.k"
    )
    assert join.on == (("A.epoch", "B.epoch", "C.epoch"),)
    assert join.residual is not None
    assert join.residual.text == '"C.epoch" = "B.k"'


def test_streams_that_promise_are_joined_two_at_a_time_as_before() -> None:
    text = "SELECT * FROM A, B, C WHERE A.epoch = B.epoch AND B.epoch = C.epoch"
    assert joins(text, **dict.fromkeys("ABC", lw.ordered())) == []
    (join,) = joins(text + " [MEMORY '1 kB']", **dict.fromkeys("ABC", lw.ordered()))
    assert join.oblivious == Oblivious(memory=1000, disorder=(None, None, None))


@pytest.mark.parametrize(
    ("clause", "options"),
    [
        ("[MEMORY '64 MB']", {"memory": 64_000_000}),
        ("[memory 2 KiB]", {"memory": 2048}),
        ("[MEMORY :m]", {"memory": 5_000}),
        ("[MEMORY 5000]", {"memory": 5_000}),
        ("[STRATEGY Hybrid]", {"strategy": "hybrid"}),
        ("[ACCURACY 0.99]", {"accuracy": 0.99}),
        ("[ACCURACY 99 %]", {"accuracy": 0.99}),
        ("[LATENCY 2 seconds]", {"latency": 2 * 10**9}),
        ("[LATENCY INTERVAL '2' SECOND]", {"latency": 2 * 10**9}),
        ("[READ_AHEAD 512 ROWS]", {"read_ahead": ReadAhead(rows=512)}),
        ("[READ_AHEAD 0]", {"read_ahead": ReadAhead(rows=0)}),
        ("[READ_AHEAD '64 kB']", {"read_ahead": ReadAhead(bytes=64_000)}),
        ("[read_ahead 2 KiB]", {"read_ahead": ReadAhead(bytes=2_048)}),
        ("[READ_AHEAD :m]", {"read_ahead": ReadAhead(bytes=5_000)}),
        ("[READ_AHEAD auto]", {"read_ahead": ReadAhead()}),
        (
            "[LATENCY 500 ms, ACCURACY 0.9, STRATEGY msf, MEMORY '1 GB']",
            {"latency": 5 * 10**8, "accuracy": 0.9, "strategy": "msf", "memory": 10**9},
        ),
    ],
)
def test_a_clause_says_how_rows_are_kept(clause: str, options: dict[str, Any]) -> None:
    expected = Oblivious(**options, disorder=(None, None))
    for text in (
        f"SELECT A.v FROM A, B {clause} WHERE A.epoch = B.epoch",
        f"SELECT A.v FROM A, B WHERE A.epoch = B.epoch {clause}",
        f"SELECT A.v FROM A JOIN B USING (epoch) {clause}",
        f"SELECT A.v FROM A JOIN B ON A.epoch = B.epoch {clause} WHERE A.v > 1",
    ):
        node = lw.sql(text, **streams(), m="5 kB")._node.inputs[0]
        assert isinstance(node, MultiJoinNode)
        assert node.oblivious == expected


def test_clauses_of_queries_in_queries_are_their_own() -> None:
    outer, inner = joins(
        """SELECT J.v FROM (SELECT A.epoch, A.v FROM A, B WHERE A.epoch = B.epoch [STRATEGY msf])
           AS J, C WHERE J.epoch = C.epoch [STRATEGY dbf]"""
    )
    assert outer.oblivious is not None
    assert inner.oblivious is not None
    assert (outer.oblivious.strategy, inner.oblivious.strategy) == ("dbf", "msf")
