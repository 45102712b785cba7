"""Conditions on texts as Spark SQL: the truth values of Polars, or no Spark SQL at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from random import Random

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lowwater.engines.spark.driver.text_conditions import conditions
from lowwater.plan.expressions import Expression, compile_expression
from lowwater.plan.sql.parser import read_expression

STRINGS = ["", "a", "A", "ab", "aß", "a\x00", "x\ny", "it's", 'q"q', "$x", "a%", "a_", "a\\b"]
STRINGS += ["é", "é", "Ω", "\uffff", "💥", "ﬀ", "%", " ", "z" * 40]
COLUMNS = ["s", "u", "odd `name`.x"]
SCHEMA: dict[str, pl.DataType] = dict.fromkeys(COLUMNS, pl.String())
ROWS = 120


def rows_of_texts() -> pl.DataFrame:
    """Every text in every column, nulls, and pairs of them at random."""
    dice = Random(7)
    columns = {}
    for name in COLUMNS:
        values = [*STRINGS, None, *dice.choices([*STRINGS, None], k=ROWS - len(STRINGS) - 1)]
        dice.shuffle(values)
        columns[name] = pl.Series(name, values, dtype=pl.String)
    return pl.DataFrame(columns)


FRAME = rows_of_texts()


@pytest.fixture(scope="session")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The rows in groups of four, so that a reader has statistics by which to skip them."""
    path = tmp_path_factory.mktemp("text_conditions") / "rows.parquet"
    pq.write_table(FRAME.with_row_index("row").to_arrow(), path, row_group_size=4)
    return str(path)


@pytest.fixture(scope="session")
def rows(spark: SparkSession, parquet: str) -> DataFrame:
    return read(spark, parquet, {})


def read(spark: SparkSession, path: str, settings: Mapping[str, str]) -> DataFrame:
    """The rows in a session of their own."""
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    return session.read.parquet(path)


def compiled(text: str, schema: Mapping[str, pl.DataType] = SCHEMA) -> Expression:
    return compile_expression(read_expression(text), schema)


def spark_text(text: str, schema: Mapping[str, pl.DataType] = SCHEMA) -> str | None:
    """The Spark SQL of a condition, if all of it is translated."""
    tree = compiled(text, schema).tree
    assert tree is not None
    parts = [each.text for each in conditions(tree, schema)]
    return " AND ".join(f"({each})" for each in parts) if all(parts) else None


def theirs(frame: DataFrame, texts: Sequence[str]) -> list[pl.Series]:
    """What Spark makes of conditions, in one query."""
    columns = [sf.expr(str(spark_text(each))).alias(f"x{n}") for n, each in enumerate(texts)]
    table = frame.select("row", *columns).toArrow().sort_by("row")
    return [pl.Series(pl.from_arrow(array)) for array in table.columns[1:]]


def assert_same(text: str, got: pl.Series) -> None:
    expected = FRAME.with_columns(x=compiled(text).polars)["x"]
    assert got.dtype == expected.dtype == pl.Boolean
    assert got.to_list() == expected.to_list(), (text, spark_text(text))


# ---- each construct ----------------------------------------------------------------------------

EVERY = [
    *("s = ''", "s <> 'aß'", "s = 'it''s'", "s = 'q\"q'", "s = '$x'", "s = 'a\\b'", "'a' = s"),
    *("s = 'x\ny'", "s <> '💥'", "s = '\uffff'", "s = 'é'", "s = '${x}'", "s = 'A'", "(s) = 'a'"),
    *("s IS NULL", "s IS NOT NULL", "NOT s = 'a'", "NOT (s = 'a' OR u = 'b') AND s <> ''"),
    *("s = 'a' AND u = 'a'", "s = 'a' OR u IS NULL", "(s = 'a' OR (u LIKE '%a')) AND NOT u = 'ab'"),
    *(
        "s IN ('', 'a', 'é', '$x')",
        "s NOT IN ('a')",
        "s IN ('a')",
        "\"odd `name`.x\" IN ('%', ' ')",
    ),
    f"s IN ({', '.join(repr(chr(n)) for n in range(65, 99) if n != 92)})",
    *("s LIKE 'a%'", "s LIKE '%b'", "s LIKE '%ß%'", "s LIKE 'x%y'", "s LIKE '_'", "s LIKE 'a_'"),
    *("s NOT LIKE 'a%'", "s LIKE ''", "s LIKE '%'", "s LIKE 'it''s'", "s LIKE '_%_'"),
    *("s LIKE '%\n%'", "s LIKE '$%'", "s LIKE 'a.%'", "starts_with(s, 'a')", "starts_with(s, '')"),
    *("starts_with(u, '%') OR s LIKE '%$%'", "\"odd `name`.x\" = 'a'", '"odd `name`.x" IS NULL'),
]


@pytest.fixture(scope="session")
def computed(rows: DataFrame) -> dict[str, pl.Series]:
    return dict(zip(EVERY, theirs(rows, EVERY), strict=True))


@pytest.mark.parametrize("text", EVERY)
def test_spark_gives_the_truth_values_of_polars(text: str, computed: dict[str, pl.Series]) -> None:
    assert_same(text, computed[text])


def test_the_session_has_no_say(spark: SparkSession, parquet: str) -> None:
    settings = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    for text, got in zip(EVERY, theirs(read(spark, parquet, settings), EVERY), strict=True):
        assert_same(text, got)


def test_texts_are_compared_byte_by_byte(rows: DataFrame) -> None:
    collated = rows.withColumn("s", sf.expr("s COLLATE UTF8_LCASE"))
    collated = collated.withColumn("u", sf.expr("u COLLATE UNICODE_CI_AI"))
    for text, got in zip(EVERY, theirs(collated, EVERY), strict=True):
        assert_same(text, got)


def test_filters_keep_the_same_rows(rows: DataFrame) -> None:
    """Filters reach the reader of the files, which skips rows by rules of its own."""
    kept = [
        rows.where(str(spark_text(each))).select("row", sf.lit(n).alias("n"))
        for n, each in enumerate(EVERY)
    ]
    found = pl.from_arrow(reduce(DataFrame.union, kept).toArrow())
    assert isinstance(found, pl.DataFrame)
    for n, each in enumerate(EVERY):
        expected = FRAME.with_row_index("row").filter(compiled(each).polars)["row"].to_list()
        assert sorted(found.filter(pl.col("n") == n)["row"]) == expected, each


# ---- any condition -----------------------------------------------------------------------------

columns = st.sampled_from(["s", "u", '"odd `name`.x"'])
literals = st.sampled_from(STRINGS).map(lambda text: "'" + text.replace("'", "''") + "'")
negations = st.sampled_from(["", "NOT "])
simple = st.one_of(
    st.builds("{} {} {}".format, columns, st.sampled_from(["=", "<>"]), literals),
    st.builds(
        "{} {}IN ({}, {})".format, columns, st.sampled_from(["", "NOT "]), literals, literals
    ),
    st.builds("{} {}LIKE {}".format, columns, st.sampled_from(["", "NOT "]), literals).filter(
        lambda text: "\\" not in text
    ),
    st.builds("starts_with({}, {})".format, columns, literals),
    st.builds("{} IS {}NULL".format, columns, negations),
)
anything = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds("NOT ({})".format, inner),
        st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR"]), inner),
    ),
    max_leaves=6,
)


@settings(max_examples=6, phases=[Phase.generate])  # a failure says which condition it was
@given(texts=st.lists(anything, min_size=40, max_size=50, unique=True))
def test_any_condition_is_the_same(rows: DataFrame, texts: list[str]) -> None:
    for text, got in zip(texts, theirs(rows, texts), strict=True):
        assert_same(text, got)


# ---- what is left out --------------------------------------------------------------------------

OTHERS: dict[str, pl.DataType] = {
    "n": pl.Int64(),
    "f": pl.Float64(),
    "b": pl.Boolean(),
    "t": pl.Datetime("us"),
    "raw": pl.Binary(),
    "kind": pl.Categorical(),
    "Twin": pl.String(),
    "tWIN": pl.String(),
    "${x}": pl.String(),
}

LEFT_OUT = [
    *("s = u", "s < 'a'", "s > 'a'", "s BETWEEN 'a' AND 'b'", "s IN (u, 'a')", "s IN ('a', NULL)"),
    *("s IS DISTINCT FROM 'a'", "s = NULL", "'a' = 'b'", "TRUE", "b", "NOT b", "b IS NULL"),
    *("upper(s) = 'A'", "s || u = 'ab'", "length(s) = 1", "coalesce(s, 'a') = 'a'"),
    *("s ILIKE 'a%'", "s LIKE 'a\\%'", "starts_with(s, u)", "contains(s, 'a')"),
    *("n = 5", "n IS NULL", "f > 0.5", "t > TIMESTAMP '2020-01-01'", "raw IS NULL", "kind = 'a'"),
    *("s = 'a' OR n = 5", "NOT (s = 'a' AND b)", "CASE WHEN b THEN s ELSE u END = 'a'"),
    *("\"Twin\" = 'a'", "\"${x}\" = 'a'", "(s = 'a') IS NULL", "(s = 'a') = b"),
    "s = '" + "x" * 20_000 + "'",  # too long
]


@pytest.mark.parametrize("text", LEFT_OUT)
def test_what_might_differ_or_is_no_text_is_not_translated(text: str) -> None:
    assert spark_text(text, SCHEMA | OTHERS) is None


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("s = 'a'", "((`s` COLLATE UTF8_BINARY) = 'a')"),
        ("s = '$x'", "((`s` COLLATE UTF8_BINARY) = CAST(X'2478' AS STRING))"),
        ('"odd `name`.x" IS NULL', "((`odd ``name``.x` COLLATE UTF8_BINARY) IS NULL)"),
    ],
)
def test_texts_are_plain(text: str, spark: str) -> None:
    assert spark_text(text) == f"({spark})"
