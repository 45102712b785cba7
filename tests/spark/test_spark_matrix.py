"""A part of the matrix of the language on Spark: Spark gives the values that Polars gives."""

from __future__ import annotations

from pathlib import Path
from random import Random

import polars as pl
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from lowwater.errors import ExpressionError
from lowwater.plan.expressions import Expression, compile_expression
from lowwater.plan.spark_sql import spark_text
from lowwater.plan.spark_values import spark_type
from lowwater.plan.sql.parser import read_expression
from tests.properties.test_expression_matrix import SEED
from tests.spark.test_spark_expressions import arrow_type, bits
from tests.support.expression_matrix import every_case, frame

DRAWN, AT_ONCE = 40_000, 80


def handed_over(rows: pl.DataFrame) -> list[Expression]:
    """The expressions among the cases drawn that Spark computes."""
    found = []
    for _, text in Random(SEED).sample(list(every_case()), DRAWN):
        try:
            expression = compile_expression(read_expression(text), rows.schema)
        except ExpressionError:
            continue
        if expression.polars.meta.root_names() and spark_text(expression, rows.schema):
            found.append(expression)
    return found


def test_a_sample_of_the_matrix_is_the_same_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    rows = frame(SEED)
    rows = rows.select(
        name for name, dtype in rows.schema.items() if spark_type(dtype)
    ).with_columns(frame(SEED)["row"].cast(pl.Int64))
    pq.write_table(rows.to_arrow(), tmp_path / "rows.parquet")
    table = spark.read.parquet(str(tmp_path / "rows.parquet")).coalesce(1).cache()
    expressions = handed_over(rows)
    assert len(expressions) > 200
    wrong = []
    for start in range(0, len(expressions), AT_ONCE):
        some = expressions[start : start + AT_ONCE]
        columns = [
            sf.expr(str(spark_text(each, rows.schema))).alias(f"x{n}")
            for n, each in enumerate(some)
        ]
        answers = table.select("row", *columns).toArrow().sort_by("row")
        for each, column in zip(some, answers.columns[1:], strict=True):
            theirs = pl.Series(pl.from_arrow(column.cast(arrow_type(each.dtype))))
            ours = rows.sort("row").with_columns(x=each.polars)["x"]
            if bits(ours) != bits(theirs):
                wrong.append((each.text, spark_text(each, rows.schema)))
    assert not wrong, (SEED, len(wrong), wrong[:10])
