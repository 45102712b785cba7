"""Every query of ``sql/`` on every engine: the oracle's answers, the rows or the error written."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from functools import cache
from math import isnan
from typing import Any

import duckdb
import polars as pl
import pytest

import lowwater as lw
from tests.conformance.engines import Engine
from tests.conformance.sql_cases import SqlCase, all_cases, read_rows

CASES = all_cases()
ANSWERED = [pytest.param(case, id=case.name) for case in CASES if case.error is None]
REFUSED = [pytest.param(case, id=case.name) for case in CASES if case.error is not None]
MACROS = """
    -- The starts of the windows a time is in: multiples of step, the length of time in seconds.
    CREATE MACRO starts(t, length, step) AS list_transform(
        generate_series(
            CAST(floor((epoch_us(t) - length * 1000000) / (step * 1000000.0)) AS BIGINT) + 1,
            CAST(floor(epoch_us(t) / (step * 1000000.0)) AS BIGINT)),
        lambda x: make_timestamp(CAST(x * step * 1000000 AS BIGINT)));
    CREATE MACRO whole_starts(t, length, step) AS list_transform(
        generate_series(
            CAST(floor((t - length) / CAST(step AS DOUBLE)) AS BIGINT) + 1,
            CAST(floor(t / CAST(step AS DOUBLE)) AS BIGINT)),
        lambda x: x * step);
    CREATE MACRO bucket(t, width) AS CAST(floor(epoch_us(t) / (width * 1000000.0)) AS BIGINT);
    CREATE MACRO seconds(n) AS to_microseconds(CAST(n * 1000000 AS BIGINT));
"""
Rows = list[tuple[Any, ...]]


@cache
def expected(case: SqlCase) -> tuple[list[str], Rows]:
    """The names of the columns and the rows."""
    if case.rows is not None:
        names, rows = read_rows(case.rows)
        return names, _plain(rows)
    assert case.oracle is not None
    with duckdb.connect() as connection:
        connection.execute(MACROS)
        for name, table in case.all_tables().items():
            connection.register(name, table.to_arrow())
        found = connection.execute(case.oracle)
        return [column[0] for column in found.description], _plain(found.fetchall())


def _plain(rows: Rows) -> Rows:
    return [tuple(map(_plain_value, row)) for row in rows]


def _plain_value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_plain_value, value))
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return "NaN" if isnan(value) else round(value, 6) + 0.0
    return value


def check(case: SqlCase, found: pl.DataFrame) -> None:
    names, rows = expected(case)
    assert found.columns == names
    got = _plain(found.rows())
    if not case.about:
        assert Counter(got) == Counter(rows)
        return
    assert len(got) == len(rows)
    for one, two in zip(sorted(got), sorted(rows), strict=True):
        for value, exact in zip(one, two, strict=True):
            near = pytest.approx(exact, rel=case.about) if isinstance(exact, float | int) else exact
            assert value == near


@pytest.mark.parametrize("case", ANSWERED)
def test_answers_are_as_expected(case: SqlCase, engine: Engine) -> None:
    query = case.stream()
    found = pl.DataFrame(engine.collect(query, chunk_rows=40, buckets=2))
    assert dict(found.schema) == query.schema
    check(case, found)
    if case.ordered:
        times = found[case.ordered].to_list()
        assert times == sorted(times)


@pytest.mark.parametrize("case", ANSWERED)
def test_the_in_order_plan_gives_the_same_answers(case: SqlCase) -> None:
    check(case, pl.DataFrame(case.stream().collect(plan="in-order", chunk_rows=7)))


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_at_its_place_and_says_why(case: SqlCase) -> None:
    with pytest.raises(lw.QueryError) as raised:
        case.stream()
    error, wanted = raised.value, " ".join((case.error or "").split())
    assert isinstance(error, lw.ExpressionError), error
    pattern = re.escape(wanted).replace(re.escape("..."), ".*")
    assert re.fullmatch(pattern, error.message, re.DOTALL), error
    assert (error.line, error.column) == case.place, error
    assert error.text == case.query


def test_every_query_has_an_answer() -> None:
    """A query that gives nothing would prove nothing."""
    empty = [case.name for case in CASES if case.error is None and not expected(case)[1]]
    assert not empty
