"""Each text is parsed once, however often its expressions are checked, typed and compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pytest
from sqlglot.parser import Parser

import lowwater as lw


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The texts that the parser reads, in order."""
    found: list[str] = []
    original = Parser._parse

    def counted(self: Parser, *given: Any, **named: Any) -> Any:
        found.append(str(named.get("sql") or given[-1]))
        return original(self, *given, **named)

    monkeypatch.setattr(Parser, "_parse", counted)
    return found


def stream(name: str = "s", update_key: str | None = None) -> lw.Stream:
    rows = pl.DataFrame({"ts": [1, 2], "k": ["a", "b"], "v": [1, 2]})
    return lw.stream(lw.replay(rows), name=name, time="ts", update_key=update_key)


def windowed() -> lw.Stream:
    return stream().window("1 minute").group_by("k")  # type: ignore[return-value]


FLUENT: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "where": (lambda: stream().where("v > 1"), ["v > 1"]),
    "select": (
        lambda: stream().select("ts", "k", a="ts + 1", b="greatest(ts, ts + 5)", c="v"),
        ["ts + 1", "greatest(ts, ts + 5)", "v"],
    ),
    "map": (lambda: stream().map(double="v * 2"), ["v * 2"]),
    "window": (
        lambda: windowed().agg(n="count(*)", s="sum(v) filter (where v > 1)"),  # type: ignore[attr-defined]
        ["count(*)", "sum(v) filter (where v > 1)"],
    ),
    "on change": (
        lambda: stream().window("1 minute", slide="on change").agg(n="sum(v)"),
        ["sum(v)"],
    ),
    "group": (lambda: stream().group_by("ts").agg(n="max(v + 1)"), ["max(v + 1)"]),
    "join": (
        lambda: stream().join(stream("t"), within="1 minute", where="v > v_right"),
        ["v > v_right"],
    ),
    "joins": (
        lambda: lw.join([stream(), stream("t")], within="1 minute", where="v > v_2"),
        ["v > v_2"],
    ),
    "updates": (lambda: stream().updates("k", delete_when="v = 0"), ["v = 0"]),
    "names": (lambda: stream().select("ts", "k").distinct().order_by(), []),
}


@pytest.mark.parametrize("case", list(FLUENT))
def test_each_piece_of_text_of_the_fluent_api_is_parsed_once(case: str, parses: list[str]) -> None:
    build, texts = FLUENT[case]
    build()
    assert parses == texts


QUERIES = {
    "plain": "SELECT ts, k, v + 1 AS more FROM s WHERE v > 1 AND k <> 'x' ORDER BY ts",
    "times": "SELECT ts - 30 AS early, ts / 10 AS bucket FROM s WHERE ts / 10 > 3",
    "window": """SELECT k, count(*) AS n, sum(v) / count(*) AS mean FROM s [RANGE 1 minute, WA ts]
                 GROUP BY k HAVING max(v) > 1""",
    "computed group": """SELECT upper(k) AS name, sum(v) FILTER (WHERE v > 1) AS s
                         FROM s [RANGE 1 minute] GROUP BY upper(k)""",
    "group": "SELECT ts, avg(v) FROM s GROUP BY ts",
    "join": """SELECT s.k, t.v - s.v AS gap FROM s JOIN t ON s.k = t.k AND upper(s.k) = upper(t.k)
               AND s.ts >= t.ts - 60 AND s.ts <= t.ts + 60 WHERE s.v <> t.v AND s.v > 1""",
    "exists": """SELECT * FROM s WHERE EXISTS
                 (SELECT 1 FROM t WHERE s.k = t.k AND s.ts >= t.ts - 60 AND s.ts <= t.ts)""",
    "union": "SELECT k, ts FROM s UNION ALL SELECT k, ts AS other FROM t",
    "nested": "WITH w AS (SELECT ts, v * 2 AS d FROM s) SELECT ts, d FROM w WHERE d > 2",
}


@pytest.mark.parametrize("case", list(QUERIES))
def test_a_query_text_is_parsed_once(case: str, parses: list[str]) -> None:
    streams = {"s": stream("s"), "t": stream("t")}
    lw.sql(QUERIES[case], **{name: each for name, each in streams.items() if name in QUERIES[case]})
    assert parses == [QUERIES[case]]
