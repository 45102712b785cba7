"""Programs pull the newest answers of a run as JSON, where rows are shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from tests.unit.dashboard.test_server import fetched

SCHEMA = {"ts": pl.Datetime("us"), "shop": pl.String, "item": pl.Int64, "price": pl.Float64}


@pytest.fixture
def prices() -> Iterator[tuple[lw.Push, lw.Run]]:
    """A run that goes on, by two key columns, with a page that shows rows."""
    push = lw.push(SCHEMA)
    stream = lw.stream(
        push, name="prices", time="ts", update_key=("shop", "item"), delete_when="price < 0"
    )
    run = stream.run(dashboard=lw.dashboard(show_rows=True))
    assert run.dashboard is not None
    yield push, run
    run.stop()
    run.dashboard.close()


def sent(push: lw.Push, run: lw.Run, rows: list[tuple[int, str, int, float]]) -> None:
    """Send rows and wait until the run has answered them."""
    before = run.metrics().operator("update").rows_in
    start = pl.datetime(2026, 1, 1)
    table = pl.DataFrame(rows, ["s", *list(SCHEMA)[1:]], orient="row")
    push.send(
        table.select(ts=start + pl.duration(seconds="s"), shop="shop", item="item", price="price")
    )
    while (now := run.metrics().operator("update")).rows_in < before + len(rows) or int(
        now.about["waiting"]
    ):
        assert not run.await_termination(0.01)


def asked(run: lw.Run, path: str) -> tuple[int, Any]:
    assert run.dashboard is not None
    status, _, text = fetched(run.dashboard.url + path)
    return status, json.loads(text) if status == 200 else text


def test_the_answer_of_a_key_and_the_table_follow_the_run(prices):
    push, run = prices
    sent(push, run, [(1, "a", 7, 1.5), (2, "b", 7, 2.5)])
    sent(push, run, [(3, "a", 7, float("nan"))])
    status, found = asked(run, "api/latest?key=a&key=7")
    assert (status, found["query"], found["key"]) == (200, "1", ["a", 7])
    answer = found["answer"]
    assert answer["_time"] == answer["ts"] == "2026-01-01 00:00:03"
    assert answer["price"] == "nan", "JSON has no such number"
    assert answer["_staleness"] == 0
    assert answer["_age"] >= 0
    assert asked(run, "api/latest?key=c&key=7")[1]["answer"] is None

    _, table = asked(run, "api/table")
    assert (table["keys"], table["limit"]) == (2, 1_000)
    assert table["columns"] == [*SCHEMA, "_time", "_age", "_staleness"]
    assert table["types"][2:4] == ["int64", "double"]
    assert [row[1:3] for row in table["rows"]] == [["a", 7], ["b", 7]], "the newest first"
    assert [row[1] for row in asked(run, "api/table?limit=1&query=1")[1]["rows"]] == ["a"]
    shown = asked(run, "api/rows")[1]["queries"]["1"]["table"]
    assert [row[1] for row in shown["rows"]] == ["a", "b"]

    sent(push, run, [(4, "a", 7, -1.0)])
    assert asked(run, "api/latest?key=a&key=7")[1]["answer"] is None
    assert asked(run, "api/table")[1]["keys"] == 1


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("api/latest?key=a", "give 2 values, not 1"),
        ("api/latest?key=a&key=b", "'b' is no value of key column 'item', which has type Int64"),
        ("api/latest?query=9&key=a&key=7", "9"),
        ("api/table?limit=0", "limit= is a whole number from 1 to 100,000, not '0'"),
        ("api/table?limit=many", "not 'many'"),
    ],
)
def test_wrong_questions_say_what_is_right(prices, path, message):
    status, text = asked(prices[1], path)
    assert status == 400
    assert message in text


def test_rows_that_are_not_shown_cannot_be_pulled():
    table = pl.DataFrame({"ts": [1], "k": ["secret"]})
    stream = lw.stream(table, name="S", time="ts", update_key="k")
    run = stream.run(dashboard=True)
    run.await_termination()
    assert run.dashboard is not None
    for path in ("api/latest?key=secret", "api/table"):
        assert asked(run, path) == (404, "rows are shown with --show-rows only")
    run.dashboard.close()


def test_a_query_without_an_update_key_has_no_table():
    run = lw.stream(pl.DataFrame({"ts": [1]}), name="S", time="ts").run(
        dashboard=lw.dashboard(show_rows=True)
    )
    run.await_termination()
    status, text = asked(run, "api/table")
    assert status == 400
    assert "declare update_key= on its stream" in text
    assert asked(run, "api/rows")[1]["queries"]["1"]["table"] == {"columns": [], "rows": []}
    assert run.dashboard is not None
    run.dashboard.close()
