"""SQL text: checked against columns, with the place of the error."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.operators.rowwise import Derivation
from lowwater.plan.expressions import (
    AggregateCall,
    Expression,
    compile_expression,
    compile_predicate,
    read_aggregate,
)
from lowwater.plan.sql.parser import read_expression
from lowwater.stream.time_domain import TimeDomain

SCHEMA = {"ts": pl.Int64(), "length": pl.Int64(), "name": pl.String(), "odd name": pl.Int64()}


def compiled(text: str, schema: Any = SCHEMA) -> Expression:
    return compile_expression(read_expression(text), schema)


def derivation(text: str, domains: Any) -> Derivation | None:
    schema = {name: domain.dtype for name, domain in domains.items()} | {"c": pl.Int64()}
    return compiled(text, schema).derivation(domains)


def take_apart(text: str) -> AggregateCall:
    return read_aggregate(read_expression(text))


def value(text: str, **columns: list[Any]) -> list[Any]:
    frame = pl.DataFrame(columns)
    expression = compiled(text, dict(frame.schema))
    got = frame.select(expression.polars.alias("x"))["x"]
    assert got.dtype == expression.dtype
    return got.to_list()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * 2", [9, None]),
        ("a / b", [0.25, None]),
        ("a > 0 AND b IS NOT NULL", [True, False]),
        ("CASE WHEN b IS NULL THEN 'none' ELSE 'some' END", ["some", "none"]),
        ("coalesce(b, a)", [4, 2]),
        ("greatest(a, b)", [4, 2]),
        ("a IN (1, 5)", [True, False]),
        ("a BETWEEN 2 AND 3", [False, True]),
        ('"a"', [1, 2]),
    ],
)
def test_expressions_mean_what_sql_says(text: str, expected: list[Any]) -> None:
    assert value(text, a=[1, 2], b=[4, None]) == expected


def test_quotients_by_a_constant_are_right_to_the_last_bit() -> None:
    numbers = [float(each) for each in range(1, 1000)]
    assert value("x / 10", x=numbers) == [each / 10 for each in numbers]
    assert value("n / 7", n=[int(each) for each in numbers]) == [each / 7 for each in numbers]
    assert value("round(x, 1)", x=[-7.25, 0.25]) == [-7.3, 0.3]
    assert value("x / 0.0", x=[1.0, -1.0, None]) == [float("inf"), float("-inf"), None]


def test_an_unknown_column_is_underlined_with_line_column_and_suggestion() -> None:
    with pytest.raises(lw.ExpressionError) as caught:
        compiled("length +\n  lenght * 2")
    error = caught.value
    assert (error.line, error.column) == (2, 3)
    assert "unknown column 'lenght'. Did you mean 'length'?" in str(error)
    assert "at line 2, column 3" in str(error)
    assert str(error).splitlines()[-2:] == ["    lenght * 2", "    ^^^^^^"]


def test_the_first_of_several_unknown_columns_is_named() -> None:
    with pytest.raises(lw.ExpressionError) as caught:
        compiled("zig + zag")
    assert "'zig'" in str(caught.value)
    assert caught.value.column == 1


def test_without_a_near_name_the_known_ones_are_listed() -> None:
    with pytest.raises(lw.ExpressionError, match="Known: length, name, odd name, ts"):
        compiled("qqq")


def test_quoted_names_may_be_odd() -> None:
    assert compiled('"odd name" + 1').dtype == pl.Int64


@pytest.mark.parametrize("text", ["length +", "(length", "length ) 2", "1 2 3"])
def test_what_cannot_be_parsed_is_an_expression_error(text: str) -> None:
    with pytest.raises(lw.ExpressionError, match="cannot read this SQL"):
        compiled(text)


def test_an_unfinished_string_is_an_expression_error() -> None:
    with pytest.raises(lw.ExpressionError):
        compiled("name = 'abc")


@pytest.mark.parametrize("text", ["", "   ", None, 5])
def test_no_text_is_a_query_error(text: Any) -> None:
    with pytest.raises(lw.QueryError, match="an expression is a piece of SQL text"):
        compiled(text)


def test_a_query_is_no_expression() -> None:
    with pytest.raises(lw.ExpressionError, match="cannot hold a query"):
        compiled("length > (SELECT 1)")


def test_an_aggregate_has_no_place_in_an_expression() -> None:
    with pytest.raises(lw.ExpressionError, match=r"is an aggregate; aggregates go into agg"):
        compiled("sum(length) + 1")


def test_types_that_do_not_fit_are_an_expression_error() -> None:
    with pytest.raises(
        lw.ExpressionError, match="a condition must be true or false; this is Int64"
    ):
        compile_predicate(read_expression("length + 1"), SCHEMA)


def test_aggregates_are_taken_apart() -> None:
    parts = take_apart("count(*)")
    assert (parts.function, parts.argument, parts.distinct) == ("count", None, False)
    parts = take_apart("COUNT(DISTINCT length + 1)")
    assert (parts.function, parts.distinct) == ("count", True)
    assert parts.argument is not None
    assert compile_expression(parts.argument, SCHEMA).dtype == pl.Int64
    for name in ("sum", "avg", "min", "max", "stddev", "first", "last"):
        assert take_apart(f"{name}(length)").function == name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("length", "an aggregate is one call of"),
        ("sum(length) + 1", "compute around it with"),
        ("median(length)", "an aggregate is one call of"),
        ("sum(*)", "sum needs an argument"),
        ("count(DISTINCT length, name)", "takes one argument"),
    ],
)
def test_what_is_no_aggregate_is_refused(text: str, says: str) -> None:
    with pytest.raises(lw.ExpressionError, match=says):
        take_apart(text)


def test_a_plain_column_is_recognised() -> None:
    assert compiled("length").column == "length"
    assert compiled('"odd name"').column == "odd name"
    assert compiled("length + 0").column is None


# ---- what progresses ---------------------------------------------------------------------------

INT = {"a": TimeDomain.of(pl.Int64()), "b": TimeDomain.of(pl.Int64())}
MICRO = {"t": TimeDomain.of(pl.Datetime("us"))}


@pytest.mark.parametrize(
    ("text", "sources", "how"),
    [
        ("a", (("a", 0),), "all"),
        ("(a)", (("a", 0),), "all"),
        ("a + 5", (("a", 5),), "all"),
        ("a - 5", (("a", -5),), "all"),
        ("greatest(a, b)", (("a", 0), ("b", 0)), "all"),
        ("least(a, b + 1)", (("a", 0), ("b", 1)), "least"),
        ("coalesce(a, b)", (("a", 0), ("b", 0)), "least"),
    ],
)
def test_monotone_forms_progress(text: str, sources: Any, how: str) -> None:
    found = derivation(text, INT)
    assert found is not None
    assert (found.sources, found.how) == (sources, how)


@pytest.mark.parametrize(
    "text", ["-a", "a * 2", "a + b", "c", "5 - a", "a + 0.5", "a % 10", "greatest(a, c)"]
)
def test_other_forms_do_not_progress(text: str) -> None:
    assert derivation(text, INT) is None


def test_an_interval_shifts_a_datetime() -> None:
    found = derivation("t + INTERVAL '1' MINUTE", MICRO)
    assert found is not None
    assert found.sources == (("t", 60_000_000),)
    found = derivation("t - INTERVAL '500 milliseconds'", MICRO)
    assert found is not None
    assert found.sources == (("t", -500_000),)


def test_a_column_with_a_dot_in_its_name_is_not_the_column_after_the_dot() -> None:
    schema = {"s.a": pl.Int64(), "a": pl.Int64()}
    assert compiled("s.a", schema).derivation(INT) is None
    assert compiled("s.a", schema).column == "s.a"


def test_of_two_expressions_the_second_is_refused() -> None:
    with pytest.raises(lw.ExpressionError, match="one expression is expected") as caught:
        compiled("length; ts")
    assert caught.value.column == 9
