"""Expressions as Spark SQL: the values of polars to the bit, or no Spark SQL at all."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import reduce
from math import isnan
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lowwater.errors import ExpressionError
from lowwater.plan.expressions import Expression, compile_expression
from lowwater.plan.spark_sql import spark_text
from lowwater.plan.spark_values import spark_type
from lowwater.plan.sql.parser import read_expression

INT8 = [-(2**7), -127, -3, -1, 0, 1, 2, 5, 126, 127]
INT16 = [*INT8, -(2**15), -129, 128, 300, 2**15 - 1]
INT32 = [*INT16, -(2**31), -(2**15) - 1, 2**15, 2**24 + 1, 2**31 - 1]
INT64 = [*INT32, -(2**63), -(2**63) + 1, -(2**31) - 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1]
NAN, INF = float("nan"), float("inf")
FLOATS = [NAN, INF, -INF, 0.0, -0.0, 0.1, 0.5, -1.5, 3.0, 5.0, 1e-320, 1e30, -1e30, 2.0**53]
STRINGS = ["", "a", "A", "ab", "aß", "a\x00", "x\ny", "it's", 'q"q', "$x", "a%", "a_", "a\\b"]
STRINGS += ["é", "é", "Ω", "\uffff", "💥", "ﬀ", "%", " ", "z" * 40]
DAYS = [-(2**31), date(1, 1, 1).toordinal() - 719_163, -1, 0, 18_262, 2_932_896, 2**31 - 1]
MICROS = [-(2**63), -(2**63) + 1, -62_135_596_800_000_000, -1, 0, 1, 1_577_836_800_000_000]
MICROS += [1_585_443_600_000_000, 1_583_650_800_000_000, 253_402_300_799_999_999]  # clocks change
MICROS += [2**63 - 1, 2**63 - 60_000_001]

POOLS: Mapping[str, tuple[Sequence[Any], pl.DataType]] = {
    "i8": (INT8, pl.Int8()),
    "i16": (INT16, pl.Int16()),
    "i32": (INT32, pl.Int32()),
    "j32": (INT32, pl.Int32()),
    "i64": (INT64, pl.Int64()),
    "j64": (INT64, pl.Int64()),
    "f32": (FLOATS, pl.Float32()),
    "f64": (FLOATS, pl.Float64()),
    "g64": (FLOATS, pl.Float64()),
    "s": (STRINGS, pl.String()),
    "u": (STRINGS, pl.String()),
    "b": ([True, False], pl.Boolean()),
    "c": ([True, False], pl.Boolean()),
    "d": (DAYS, pl.Date()),
    "e": (DAYS, pl.Date()),
    "t": (MICROS, pl.Datetime("us")),
    "v": (MICROS, pl.Datetime("us")),
    "z": (MICROS, pl.Datetime("us", "UTC")),
    "y": (MICROS, pl.Datetime("us", "UTC")),
    "odd `name`.x": (INT64, pl.Int64()),
}
SCHEMA = {name: dtype for name, (_, dtype) in POOLS.items()}
ROWS = 240


def nasty_rows() -> pl.DataFrame:
    """Every value of every pool, nulls, and pairs of them at random."""
    dice = Random(7)
    columns = {}
    for name, (pool, dtype) in POOLS.items():
        values = [*pool, None, *dice.choices([*pool, None], k=ROWS - len(pool) - 1)]
        dice.shuffle(values)
        ticks = pl.Int32() if dtype == pl.Date else pl.Int64() if dtype.is_temporal() else dtype
        columns[name] = pl.Series(name, values, dtype=ticks).cast(dtype)
    return pl.DataFrame(columns)


FRAME = nasty_rows()


@pytest.fixture(scope="session")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The rows in groups of four, so that a reader has statistics by which to skip them."""
    path = tmp_path_factory.mktemp("spark_expressions") / "rows.parquet"
    pq.write_table(FRAME.with_row_index("row").to_arrow(), path, row_group_size=4)
    return str(path)


@pytest.fixture(scope="session")
def rows(spark: SparkSession, parquet: str) -> DataFrame:
    return read(spark, parquet, {"spark.sql.session.timeZone": "America/New_York"})


def read(spark: SparkSession, path: str, settings: Mapping[str, str]) -> DataFrame:
    """The rows in a session of their own."""
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    frame = session.read.parquet(path)
    assert {n: t.upper() for n, t in frame.dtypes if n != "row"} == {
        name: spark_type(dtype) for name, dtype in SCHEMA.items()
    }
    return frame


def compiled(text: str) -> Expression:
    return compile_expression(read_expression(text), SCHEMA)


def ours(expression: Expression, frame: pl.DataFrame = FRAME) -> pl.Series:
    return frame.with_columns(x=expression.polars)["x"]


def theirs(frame: DataFrame, expressions: Sequence[Expression]) -> list[pl.Series]:
    """What Spark makes of expressions, in one query, in the types of our schema."""
    texts = [spark_text(each, SCHEMA) for each in expressions]
    columns = [sf.expr(text).alias(f"x{n}") for n, text in enumerate(texts) if text]
    assert len(columns) == len(expressions), texts
    table = frame.select("row", *columns).toArrow().sort_by("row")
    return [
        pl.Series(pl.from_arrow(array.cast(arrow_type(each.dtype))))
        for array, each in zip(table.columns[1:], expressions, strict=True)
    ]


def arrow_type(dtype: pl.DataType) -> pa.DataType:
    return pl.Series([], dtype=dtype).to_arrow(compat_level=pl.CompatLevel.oldest()).type


def bits(column: pl.Series) -> list[Any]:
    """Values that differ exactly if the values of the column do; NaN is one value."""
    if column.dtype.is_float():
        return [
            None if each is None else "NaN" if isnan(each) else struct.pack("d", each)
            for each in column.to_list()
        ]
    return column.to_physical().to_list()


def assert_same(expression: Expression, got: pl.Series, frame: pl.DataFrame = FRAME) -> None:
    expected = ours(expression, frame)
    assert got.dtype == expected.dtype == expression.dtype
    wrong = [
        (number, mine, his)
        for number, (mine, his) in enumerate(zip(bits(expected), bits(got), strict=True))
        if mine != his
    ]
    assert not wrong, (expression.text, spark_text(expression, SCHEMA), wrong[:5], len(wrong))


# ---- each construct ----------------------------------------------------------------------------

COMPARED = [
    *(f"i8 {sign} 5" for sign in ("=", "<>", "<", "<=", ">", ">=")),
    *(f"f64 {sign} 0.5" for sign in ("=", "<>", "<", "<=", ">", ">=")),
    *(f"f64 {sign} g64" for sign in ("=", "<>", "<", "<=", ">", ">=")),
    *(f"s {sign} u" for sign in ("=", "<>", "<", "<=", ">", ">=")),
    *(f"t {sign} v" for sign in ("=", "<>", "<", "<=", ">", ">=")),
    *("i8 > 300", "i8 < 300", "i8 = 261", "i16 >= -32768", "i32 <> 2147483648", "5 < i32"),
    *("i64 = 9223372036854775807", "i64 <= -9223372036854775808", "i64 > 60 * 60 - 1"),
    *("i8 > 1.5", "i64 = 5.0", "i64 < -1.25", "i64 > 9223372036854775806.5", "2.5 > i32"),
    *("i64 > 1e3", "i64 = 9007199254740992e0", "i8 < 1e-1", "i8 = i64", "i16 < j32", "i64 >= j64"),
    *("f64 = 0", "f64 > 5", "f64 < 9007199254740993", "f64 = 0.1", "f64 >= 1e30", "f64 = -0.0"),
    *("f32 = 0.1", "f32 > 0.1", "f32 <= 5", "f32 < 16777217", "f32 = f64"),
    *("i64 = f64", "f64 > i8", "f32 < f32", "i32 <= f64"),
    *("s = ''", "s > 'a'", "s <= 'aß'", "s = 'it''s'", "s = 'q\"q'", "s = '$x'", "s = 'a\\b'"),
    *("s = 'x\ny'", "s < '💥'", "s > '\uffff'", "s = 'é'", "s >= '${x}'", "s = 'A'"),
    *("b = TRUE", "b <> c", "b > c", "FALSE < b"),
    *("d > DATE '2020-01-01'", "d = e", "d <= DATE '0001-01-01'", "d < DATE '9999-12-31'"),
    *("t > TIMESTAMP '2020-01-01 00:00:00'", "t <= TIMESTAMP '2020-03-29 01:00:00.000001'"),
    *("t = TIMESTAMP '2020-01-01'", "t >= DATE '2020-01-01'", "DATE '2020-01-01' > t"),
    *("t < TIMESTAMP '2020-01-01' + INTERVAL '1' DAY", "t = TIMESTAMP '0001-01-01'"),
    *("z > TIMESTAMPTZ '2020-01-01 00:00:00Z'", "z = TIMESTAMPTZ '2020-01-01 02:00:00+02:00'"),
    *("z <= y", "z <> y"),
    *("i8 IS DISTINCT FROM i32", "i8 IS NOT DISTINCT FROM 5", "f64 IS NOT DISTINCT FROM g64"),
    *("s IS DISTINCT FROM u", "f32 IS DISTINCT FROM f64", "t IS NOT DISTINCT FROM v"),
]
LOGICAL = [
    *("b AND c", "b OR c", "NOT b", "NOT (b OR i8 > 3) AND c", "b AND i8 > 3 OR f64 > 1"),
    *("i8 IS NULL", "s IS NOT NULL", "f64 IS NULL", "t IS NOT NULL", "(i8 > 3) IS NULL"),
    *("b IS TRUE", "b IS NOT TRUE", "b IS FALSE", "b IS NOT FALSE", "b IS UNKNOWN", "b AND NULL"),
    *("i8 BETWEEN -1 AND 5", "i8 NOT BETWEEN 0 AND 5", "i8 BETWEEN i16 AND i64"),
    *("f64 BETWEEN 0 AND 5", "f64 NOT BETWEEN 0.1 AND g64", "s BETWEEN 'a' AND 'b'"),
    *("t BETWEEN TIMESTAMP '1970-01-01' AND TIMESTAMP '2020-06-01'", "5 BETWEEN i8 AND i16"),
    *("i64 IN (1, -5, 300)", "i64 NOT IN (1, 2)", "i8 IN (300, 5)", "i8 IN (5)", "i64 IN (i8, 5)"),
    *("i64 IN (-9223372036854775807, 9223372036854775807)", "f64 IN (f32, 3)"),
    *("f64 IN (0, 5)", "f64 IN (0.0, 0.1, 3)", "f64 NOT IN (0.5)", "s IN ('', 'a', 'é', '$x')"),
    f"f64 IN ({', '.join(str(n) for n in range(15))})",
    f"i64 IN ({', '.join(str(n) for n in range(-1, 15))})",
    f"s IN ({', '.join(repr(chr(n)) for n in range(65, 99) if n != 92)})",
    *("s NOT IN ('a')", "b IN (TRUE)", "d IN (DATE '2020-01-01')", "u IN (s, 'a')"),
    "t IN (TIMESTAMP '2020-01-01', TIMESTAMP '1970-01-01')",
    "z IN (TIMESTAMPTZ '2020-01-01 00:00:00Z')",
    *("s LIKE 'a%'", "s LIKE '%b'", "s LIKE '%ß%'", "s LIKE 'x%y'", "s LIKE '_'", "s LIKE 'a_'"),
    *("s NOT LIKE 'a%'", "s LIKE ''", "s LIKE '%'", "s LIKE 'it''s'", "s LIKE '_%_'"),
    *("s LIKE '%\n%'", "s LIKE '$%'", "s LIKE 'a.%'", "starts_with(s, 'a')", "starts_with(s, u)"),
]
CHOSEN = [
    *("CASE WHEN b THEN 1 ELSE 0 END", "CASE WHEN b THEN i8 ELSE 0 END", "IF(b, i8, 300)"),
    *("CASE WHEN b THEN i8 ELSE i64 END", "CASE WHEN b THEN 1 END", "CASE WHEN b THEN f64 END"),
    *("CASE WHEN b THEN f64 ELSE 1 END", "CASE WHEN b THEN f64 ELSE 0.1 END"),
    *("CASE WHEN b THEN f32 ELSE 1e0 END", "CASE WHEN b THEN f32 ELSE 7 END"),
    *("CASE WHEN b THEN NULL ELSE s END", "CASE WHEN b THEN s WHEN c THEN 'c' ELSE u END"),
    *("CASE i8 WHEN 5 THEN 'five' WHEN 0 THEN '$0' END", "CASE i8 WHEN i32 THEN u ELSE s END"),
    *(
        "CASE f64 WHEN 0 THEN 'zero' WHEN g64 THEN 'g' ELSE s END",
        "CASE WHEN b THEN c ELSE TRUE END",
    ),
    *("CASE WHEN b THEN t ELSE TIMESTAMP '2020-01-01' END", "CASE WHEN b THEN z END"),
    *("CASE WHEN b THEN d ELSE DATE '2020-01-01' END", "CASE WHEN i8 > 0 THEN b END"),
    *("coalesce(i8, 0)", "coalesce(i8, 300)", "coalesce(i8, i64)", "coalesce(f64, 0, 1)"),
    *("coalesce(f64, 0.1)", "coalesce(f64, g64)", "coalesce(s, u, '')", "coalesce(NULL, i8)"),
    *("coalesce(t, v)", "coalesce(z, y)", "coalesce(d, DATE '1970-01-01')", "coalesce(b, FALSE)"),
    *("coalesce(t, TIMESTAMP '2020-01-01')", "coalesce(z, TIMESTAMPTZ '2020-01-01 00:00:00Z')"),
    *("nullif(i8, 5)", "nullif(f64, 0)", "nullif(f64, g64)", "nullif(s, '')", "nullif(i8, i64)"),
    *("greatest(i8, i32)", "greatest(i8, 3)", "greatest(i8, 300)", "least(i64, i8, 0)"),
    *("greatest(s, u)", "least(s, 'b')", "greatest(t, v)", "least(z, y)", "greatest(d, e)"),
    *("greatest(b, c)", "least(t, TIMESTAMP '2020-01-01')"),
]
COMPUTED = [
    *("abs(f64)", "abs(f32)", "-f64", "-f32", "i8 + 0.5", "i64 * 1.5", "1.5", "f32 IN (0.1)"),
    *("f64 + 1", "f64 - 0.1", "f64 * 0.1", "f64 * -1", "f64 + g64", "f64 - g64", "f64 * g64"),
    *("f64 + i64", "f64 * i8", "f32 + 0.1", "f32 * 3", "f32 * f32", "f32 + f64", "1 - f64"),
    *("f64 * 1e3", "i64 * f64", "i32 + 1e0", "f64 / 2", "i64 / 1024", "f64 / 0.25", "f64 / g64"),
    *("i64 / j64", "f64 / i8", "i8 / f64", "1 / f64", "1 / i8", "coalesce(f32, f64)"),
    *("coalesce(i8, 1.5)", "CASE WHEN b THEN 1.5 ELSE 0 END", "coalesce(f32, 0.1)"),
    *("i64 IN (1, 2.5)", "f64 IN (0.5, 1e3)", "t > '2020-01-01'", "d = '2020-01-01'"),
    *("CAST(i8 AS BIGINT)", "CAST(i32 AS BIGINT)", "CAST(i64 AS DOUBLE)", "i16::INT"),
    *("CAST(f32 AS DOUBLE)", "CAST(i8 AS SMALLINT)", "CAST(f64 AS DOUBLE)", "CAST(s AS VARCHAR)"),
    *("s || u", "s || '$x'", "'<' || s || '>'", "concat(s, u)", "concat(s, '-')"),
]
CAN_FAIL = [
    *("i8 + 5", "i8 * 2", "-i8", "100 - i8", "i32 * j32", "i64 + 1", "5 - i64", "i64 * j64"),
    *("i64 + j64", "i64 - j64", "abs(i8)", "abs(i64)", "i8 % 3", "i64 % i8", "mod(i32, j32)"),
    *("CAST(i32 AS BIGINT) * j32", "b AND i8 + 1 > 3", "CASE WHEN b THEN i64 + 1 END"),
    *("t + INTERVAL '1 day'", "t - INTERVAL '500 milliseconds'", "z + INTERVAL '9 weeks'"),
    *("INTERVAL '2' HOUR + t", "t + INTERVAL '1' HOUR > v", "CAST(s AS INT)", "CAST(f64 AS INT)"),
]
"""What ends the run for some rows: Spark would compute it for rows that a filter leaves out too."""
COPIED = ["i8", "(s)", "f64", "t", '"odd `name`.x"', '"odd `name`.x" > 5', "z", "b", "d"]
CONSTANT = ["5", "-5", "5000000000", "'it''s'", "TRUE", "1e3", "DATE '2020-01-01'", "1 < 2"]
CONSTANT += ["TIMESTAMP '2020-01-01 00:00:00.5'", "TIMESTAMPTZ '2020-01-01 00:00:00Z'"]
EVERY = [*COMPARED, *LOGICAL, *CHOSEN, *COMPUTED, *COPIED, *CONSTANT]


@pytest.fixture(scope="session")
def computed(rows: DataFrame) -> dict[str, pl.Series]:
    expressions = [compiled(each) for each in EVERY]
    starts = range(0, len(expressions), 60)  # one query would be too long for Spark to compile
    values = [each for n in starts for each in theirs(rows, expressions[n : n + 60])]
    return dict(zip(EVERY, values, strict=True))


@pytest.mark.parametrize("text", EVERY)
def test_spark_gives_the_values_of_polars(text: str, computed: Mapping[str, pl.Series]) -> None:
    assert_same(compiled(text), computed[text])


@pytest.mark.parametrize("text", EVERY)
def test_polars_gives_the_same_values_row_by_row(text: str) -> None:
    """Else there would be nothing for Spark to be equal to."""
    expression = compiled(text)
    apart = [ours(expression, FRAME[n : n + 1]) for n in range(0, ROWS, 4)]
    assert bits(pl.concat(apart)) == bits(ours(expression)[::4])


def test_the_session_has_no_say(spark: SparkSession, parquet: str) -> None:
    settings = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "Asia/Kathmandu",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    expressions = [compiled(each) for each in EVERY]
    values = theirs(read(spark, parquet, settings), expressions)
    for expression, got in zip(expressions, values, strict=True):
        assert_same(expression, got)


def test_strings_are_compared_byte_by_byte(rows: DataFrame) -> None:
    collated = rows.withColumn("s", sf.expr("s COLLATE UTF8_LCASE"))
    collated = collated.withColumn("u", sf.expr("u COLLATE UNICODE_CI_AI"))
    expressions = [compiled(each) for each in EVERY if compiled(each).polars.meta.root_names()]
    about = [each for each in expressions if {"s", "u"} & set(each.polars.meta.root_names())]
    for expression, got in zip(about, theirs(collated, about), strict=True):
        assert_same(expression, got)


PUSHED = [
    *("f64 > 0.5", "f64 >= 5", "f64 = 0", "f64 <> 0.5", "NOT f64 <= 5", "f64 IN (0, 5)"),
    *("f64 BETWEEN 0 AND 5", "f32 = -0.0", "f32 > 5", "f64 = g64", "f32 < f64", "f64 > i8"),
    *("i8 > 300", "i64 = 9007199254740992e0", "i64 > 1.5", "i8 IN (300, 5)", "i8 IS NOT NULL"),
    *("s > 'a'", "s = ''", "s LIKE 'a%'", "b", "NOT b", "d <= DATE '0001-01-01'", "t >= v"),
    *("t > TIMESTAMP '2020-01-01'", "z = TIMESTAMPTZ '2020-01-01 00:00:00Z'", "i8 > 3 OR b"),
]


def test_filters_keep_the_same_rows(rows: DataFrame) -> None:
    """Filters reach the reader of the files, which skips rows by rules of its own."""
    predicates = [compiled(each) for each in PUSHED]
    kept = [
        rows.where(str(spark_text(each, SCHEMA))).select("row", sf.lit(n).alias("n"))
        for n, each in enumerate(predicates)
    ]
    found = pl.from_arrow(reduce(DataFrame.union, kept).toArrow())
    assert isinstance(found, pl.DataFrame)
    for n, each in enumerate(predicates):
        expected = FRAME.with_row_index("row").filter(each.polars)["row"].to_list()
        assert sorted(found.filter(pl.col("n") == n)["row"]) == expected, each.text


# ---- any expression ----------------------------------------------------------------------------

WHOLE = ["0", "1", "-1", "3", "127", "128", "-300", "2147483647", "2147483648", "-5000000000"]
FRACTIONS = ["0.5", "0.1", "-2.25", "1e3", "1e-1", "3.0", "16777217.0", "0.30000000000000004"]
INTEGERS = ["i8", "i16", "i32", "j32", "i64", "j64"]
COLUMNS = {
    "whole": INTEGERS,
    "fraction": ["f32", "f64", "g64", *INTEGERS],
    "text": ["s", "u"],
    "truth": ["b", "c"],
    "naive": ["t", "v"],
    "zoned": ["z", "y"],
    "day": ["d", "e"],
}
CONSTANTS = {
    "whole": WHOLE,
    "fraction": [*WHOLE, *FRACTIONS],
    "text": ["''", "'a'", "'ß'", "'a$'"],
    "truth": ["TRUE"],
    "naive": ["TIMESTAMP '2020-03-08 02:30:00'"],
    "zoned": ["TIMESTAMPTZ '2020-03-08 07:30:00Z'"],
    "day": ["DATE '2020-01-01'"],
}


CHOICES = [
    "CASE WHEN {truth} THEN {other} ELSE {other} END",
    "CASE {one} WHEN {other} THEN {other} END",
    "coalesce({one}, {other})",
    "nullif({one}, {other})",
]
EXTREMES = ["greatest({one}, {other})", "least({one}, {other})"]
NUMBERS = [
    form
    for sign in "+-*/%"
    for form in (f"({{one}} {sign} {{other}})", f"({{other}} {sign} {{one}})")
] + ["abs({one})", "-({one})"]
SHIFTS = [
    f"({{one}} {sign} INTERVAL '{length}')"
    for sign in "+-"
    for length in ("1 day", "90 seconds", "1 microsecond")
]
FORMS = {
    "whole": [*CHOICES, *NUMBERS, *EXTREMES],
    "fraction": [*CHOICES, *NUMBERS],
    "text": [*CHOICES, *EXTREMES, "({one} || {other})", "({other} || {one})"],
    "truth": CHOICES,
    "naive": [*CHOICES, *EXTREMES, *SHIFTS],
    "zoned": [*CHOICES, *EXTREMES, *SHIFTS],
    "day": [*CHOICES, *EXTREMES],
}
CONDITIONS = [
    *(f"({{one}} {sign} {{other}})" for sign in ("=", "<>", "<", "<=", ">", ">=")),
    *("({constant} < {one})", "({one} IS DISTINCT FROM {other})", "({one} IS NULL)"),
    *("({one} BETWEEN {other} AND {other})", "({one} IN ({constant}, {constant}))"),
    *("({one} IN ({one}, {constant}))", "({truth} AND {truth})", "({truth} OR {truth})"),
    *("(NOT {truth})", "(s LIKE 'a%')", "(u LIKE '_')", "({one} IS NOT DISTINCT FROM {other})"),
]
Draw = Callable[[st.SearchStrategy[str]], str]


def grown(draw: Draw, kind: str, depth: int) -> str:
    """A text that gives values of one kind; constants stand beside columns, never alone."""
    if depth <= 0:
        return draw(st.sampled_from(COLUMNS[kind]))
    return filled(draw, draw(st.sampled_from([*COLUMNS[kind], *FORMS[kind]])), kind, depth)


def condition(draw: Draw, depth: int) -> str:
    """A text that is true or false."""
    if depth <= 0:
        return draw(st.sampled_from(["b", "c", "i8 > 0", "f64 < g64", "s IS NULL"]))
    kind = draw(st.sampled_from(list(COLUMNS)))
    return filled(draw, draw(st.sampled_from(CONDITIONS)), kind, depth)


def filled(draw: Draw, form: str, kind: str, depth: int) -> str:
    def part(hole: re.Match[str]) -> str:
        if hole[1] == "truth":
            return condition(draw, depth - 1)
        constants = st.sampled_from(CONSTANTS[kind])
        if hole[1] == "constant" or (hole[1] == "other" and draw(st.booleans())):
            return draw(constants)
        return grown(draw, kind, depth - 1)

    return re.sub(r"\{(\w+)\}", part, form)


@st.composite
def anything(draw: Draw) -> str:
    kind = draw(st.sampled_from([*COLUMNS, *["condition"] * len(COLUMNS)]))
    return condition(draw, 3) if kind == "condition" else grown(draw, kind, 2)


def translatable(text: str) -> Expression | None:
    """An expression that is valid and that Spark can compute."""
    try:
        expression = compiled(text)
    except ExpressionError:
        return None
    return expression if spark_text(expression, SCHEMA) else None


@settings(max_examples=6, phases=[Phase.generate])  # a failure says which expression it was
@given(texts=st.lists(anything(), min_size=40, max_size=50, unique=True))
def test_any_expression_is_the_same_or_not_translated(rows: DataFrame, texts: list[str]) -> None:
    expressions = [each for each in map(translatable, texts) if each]
    for expression, got in zip(expressions, theirs(rows, expressions), strict=True):
        assert_same(expression, got)


# ---- what is left out ----------------------------------------------------------------------------

OTHERS = {
    "u8": pl.UInt8(),
    "u64": pl.UInt64(),
    "big": pl.Decimal(20, 2),
    "ms": pl.Datetime("ms"),
    "ns": pl.Datetime("ns"),
    "berlin": pl.Datetime("us", "Europe/Berlin"),
    "span": pl.Duration("us"),
    "raw": pl.Binary(),
    "list": pl.List(pl.Int64()),
    "kind": pl.Categorical(),
    "Twin": pl.Int64(),
    "tWIN": pl.Int64(),
    "${x}": pl.Int64(),
}
"""Columns Spark has no type for, or whose names it might read in another way."""

LEFT_OUT = [
    *("f64 / 3", "i8 / 10", "f64 / 0", "f64 / CAST(2 AS DOUBLE)"),  # depends on the number of rows
    *("f64 + 0", "0 - f64", "f64 * 0", "f64 + CAST(0 AS DOUBLE)"),
    *("greatest(f64, g64)", "least(f32, 1.0)", "f64 % 2", "i64 % 0", "f64 % g64"),
    *("i8 + f32", "i8 = f32", "f32 = 1e-1"),
    *(
        "2147483647 * i8",
        "i64 > 9223372036854775808",
    ),
    *("i64 > 0.1234567890123456789", "f32 > 1e300", "f64 > 1e400"),
    *("i8 = NULL", "i8 IN (1, NULL)", "NULL", "i8 BETWEEN NULL AND 3"),
    *("5 = CASE WHEN b THEN 5 ELSE 6 END", "'a' <> nullif(s, 'a')", "5 IN (nullif(i8, 5), 3)"),
    *("CAST(i64 AS INT)", "CAST(f64 AS BIGINT)", "CAST(i8 AS VARCHAR)", "CAST(b AS INT)"),
    *("CAST(t AS DATE)", "CAST(d AS TIMESTAMP)", "CAST(i8 AS REAL)"),
    *("d = t", "d + INTERVAL '1' DAY", "t - v", "t - TIMESTAMP '2020-01-01'"),
    "t + INTERVAL '1' MONTH",
    *("length(s)", "upper(s)", "s ILIKE 'a%'", "s LIKE 'a\\%'", "substr(s, 1, 2)", "s || i8"),
    *("round(f64, 1)", "floor(f64)", "sqrt(f64)", "EXTRACT(HOUR FROM t)"),
    *("u8 > 5", "u8 + 1", "u64 IS NULL", "big > 1", "ms = ms", "ns IS NOT NULL", "span = span"),
    *("berlin + INTERVAL '1' DAY", "raw IS NULL", "kind = 'a'", '"Twin" > 5', '"Twin"', '"${x}"'),
    "i64" + " * i64" * 20,  # too long
]


@pytest.mark.parametrize("text", [*LEFT_OUT, *CAN_FAIL])
def test_what_might_differ_is_not_translated(text: str) -> None:
    schema = SCHEMA | OTHERS
    assert spark_text(compile_expression(read_expression(text), schema), schema) is None


@pytest.mark.parametrize("name", ["u8", "big", "ns", "berlin", "list", "kind"])
def test_a_column_of_any_type_is_copied(name: str) -> None:
    schema = SCHEMA | OTHERS
    assert spark_text(compile_expression(read_expression(name), schema), schema) == f"`{name}`"
    assert (
        spark_text(compile_expression(read_expression(name), schema), schema | {name: pl.Int8()})
        is None
    )


def test_a_column_whose_text_reads_as_an_expression_is_copied() -> None:
    """A projection shows a copied column by its bare name."""
    bare = Expression.of_column("a + b", pl.Int64())
    assert spark_text(bare, {"a + b": pl.Int64(), "a": pl.Int8(), "b": pl.Int8()}) == "`a + b`"


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("i64 > 5", "((`i64` > 5L))"),
        ('"odd `name`.x" <= 5', "((`odd ``name``.x` <= 5L))"),
        ("f64 > 1.5", "(((`f64` + 0.0D) > 1.5D))"),
        ("t >= DATE '2020-01-01'", "((`t` >= CAST(DATE'2020-01-01' AS TIMESTAMP_NTZ)))"),
        ("s = '$x'", "(((`s` COLLATE UTF8_BINARY) = CAST(X'2478' AS STRING)))"),
    ],
)
def test_texts_are_plain(text: str, spark: str) -> None:
    assert spark_text(compiled(text), SCHEMA) == spark
