"""All of the language of expressions against DuckDB: the same values, or a refusal at its place."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from random import Random

import polars as pl
import pytest

import lowwater as lw
from lowwater.operators.checked import ComputationError
from lowwater.plan.expressions import compile_expression
from lowwater.plan.language.functions import BY_NAME
from lowwater.plan.sql.parser import read_expression
from tests.conftest import FULL, SEED
from tests.support.expression_matrix import (
    CAST_TO,
    OPERATORS,
    Oracle,
    differences,
    every_case,
    frame,
    ours,
    three_arguments,
)

PARTS = 8
SAMPLE = 300
"""Cases of each part in a quick run; a full run takes all of them."""


@cache
def rows() -> pl.DataFrame:
    return frame(SEED)


@cache
def oracle() -> Oracle:
    return Oracle(rows())


def drawn(part: int) -> Iterator[tuple[str, str]]:
    """The cases of a part."""
    chance = Random(f"{SEED} {part}")
    cases = list(islice(every_case(), part, None, PARTS))
    yield from cases if FULL else chance.sample(cases, SAMPLE)
    yield from three_arguments(chance, 2_000 if FULL else SAMPLE // 5)


@pytest.mark.parametrize("part", range(PARTS))
def test_expressions_give_what_duckdb_gives_or_are_refused(part: int) -> None:
    wrong = []
    for name, text in drawn(part):
        try:
            wrong += differences(name, text, rows(), oracle())[:1]
        except BaseException as error:  # a panic of Polars is no Exception
            raise AssertionError(f"LOWWATER_SEED={SEED}: {text}") from error
    assert not wrong, f"LOWWATER_SEED={SEED}\n" + "\n".join(wrong[:20])


KNOWN = {
    "if": "if(b, i8, 3)",
    "extract": "extract(hour FROM t)",
    "position": "position('a' IN s)",
    "date_part": "date_part('hour', t)",
    "date_trunc": "date_trunc('hour', t)",
    "strftime": "strftime(t, '%Y')",
    "replace": "replace(s, 'a', s2)",
    "lpad": "lpad(s, 5, 'ab')",
    "rpad": "rpad(s, 5, 'ab')",
    "split_part": "split_part(s, '-', 2)",
    "log": "log(3, f64)",
    "coalesce": "coalesce(i8, i64)",
}
FORMS = ("{}(f64)", "{}(s)", "{}(t)", "{}(s, 'a')", "{}(s, 2)", "{}(i64, i642)")


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_every_function_accepts_something(name: str) -> None:
    """Else the matrix would prove nothing about it."""
    texts = [KNOWN[name]] if name in KNOWN else [form.format(name) for form in FORMS]
    assert any(not isinstance(ours(text, rows()), lw.ExpressionError) for text in texts)


def test_the_matrix_holds_every_function_operator_and_cast() -> None:
    assert {name for name, _ in every_case()} == {
        *BY_NAME,
        *OPERATORS,
        *(f"{word} {to}" for word in ("CAST", "TRY_CAST") for to in CAST_TO),
    }


@pytest.mark.parametrize(
    "text",
    [
        *("i64 + i642", "i64 * 3", "-i64", "abs(i8)", "i32 % i322", "CAST(i64 AS TINYINT)"),
        *("CAST(s AS BOOLEAN)", "CAST(f64 AS BIGINT)", "t + INTERVAL '90000000' DAY", "hour(t)"),
    ],
)
def test_rows_without_a_value_stop_the_run_and_others_do_not(text: str) -> None:
    found = ours(text, rows())
    assert not isinstance(found, lw.ExpressionError)
    answer, _ = found
    compiled = compile_expression(read_expression(text), rows().schema)
    whole = rows().filter(~pl.Series(answer.failed))
    assert 0 < whole.height < rows().height
    assert whole.select(x=compiled.polars).schema["x"] == compiled.dtype
    with pytest.raises(ComputationError):
        rows().select(x=compiled.polars)


@pytest.mark.parametrize(
    ("text", "says", "column"),
    [
        ("to_char(t, 'YYYY-MM-DD')", "unknown function 'to_char'. Did you mean 'strftime'?", 1),
        ("contains(s, '(', 'x')", "contains takes 2 arguments, and 3 are given", 1),
        ("1 + CAST(300 AS TINYINT)", "a value does not fit TINYINT", 10),
        ("localtimestamp()", "reads a clock", 1),
        ("CAST(s AS VARCHAR(3))", "VARCHAR takes no length or precision", 6),
        ("CAST(t AS TIMESTAMP(3))", "TIMESTAMP takes no length or precision", 6),
        ("concat_ws(s)", "concat_ws takes at least 2 arguments, and 1 is given", 1),
        ("lpad('x', i64, 'y')", "takes a whole number from -10,000 to 10,000 here that is the", 11),
        ("lpad('x', 2000000000, 'y')", "not 2,000,000,000", 11),
        ("strftime(t, '%f %Q')", "does not know '%Q'", 13),
        ("i64 + 9223372036854775808", "", 1),
        ("9223372036854775807 + 1", "does not fit BIGINT", 1),
    ],
)
def test_what_is_refused_says_why_and_where(text: str, says: str, column: int) -> None:
    with pytest.raises(lw.ExpressionError) as caught:
        compile_expression(read_expression(text), rows().schema)
    assert says in caught.value.message
    assert (caught.value.line, caught.value.column) == (1, column)


def test_what_is_searched_for_is_taken_as_it_is() -> None:
    table = pl.DataFrame({"ts": [1], "s": ["plain(.)"], "t": ["plain"]})
    query = lw.stream(table, time="ts").map(
        a="contains(t, '.')", b="strpos(s, '(')", c="instr(s, '.')", d="position(')' IN s)"
    )
    assert query.collect().to_pylist()[0] | {"ts": 0} == {"ts": 0, **table.row(0, named=True)} | {
        "ts": 0,
        "a": False,
        "b": 6,
        "c": 7,
        "d": 8,
    }


def test_an_overflow_is_an_error_of_the_operator_that_names_the_expression() -> None:
    table = pl.DataFrame({"ts": [1, 2], "a": [1, 2**62]})
    query = lw.stream(table, time="ts").map(b="a * 3")
    with pytest.raises(lw.OperatorError, match=r"a \* 3: the result does not fit BIGINT"):
        query.collect()
