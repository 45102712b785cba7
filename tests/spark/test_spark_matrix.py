"""A part of the matrix of the language on Spark: the engine there gives the values Polars gives."""

from __future__ import annotations

from itertools import islice
from random import Random

import polars as pl
from pyspark.sql import SparkSession

import lowwater as lw
from lowwater.errors import ExpressionError
from lowwater.plan.expressions import compile_expression
from lowwater.plan.sql.parser import read_expression
from tests.properties.test_expression_matrix import SEED
from tests.support.expression_matrix import every_case, frame

SAMPLE, AT_ONCE = 240, 120


def has_values(text: str, rows: pl.DataFrame) -> bool:
    """Return true if an expression is accepted and fails in no row."""
    try:
        expression = compile_expression(read_expression(text), rows.schema)
    except ExpressionError:
        return False
    return not expression.failures and expression.dtype != pl.Null


def drawn(rows: pl.DataFrame) -> list[str]:
    """Return a random sample of ``SAMPLE`` of the cases that have a value for all rows."""
    cases = [text for _, text in every_case()]
    Random(SEED).shuffle(cases)
    return list(islice((text for text in cases if has_values(text, rows)), SAMPLE))


def test_a_sample_of_the_matrix_is_the_same_on_spark(spark: SparkSession) -> None:
    rows = frame(SEED)
    texts = drawn(rows)
    assert len(texts) == SAMPLE
    numbered = rows.with_row_index("at").with_columns(pl.col("at").cast(pl.Int64))
    wrong = []
    for start in range(0, len(texts), AT_ONCE):
        some = {f"x{n}": text for n, text in enumerate(texts[start : start + AT_ONCE])}
        stream = lw.stream(lw.replay(numbered), name="s", time="at")
        query = stream.select("at", **some)
        ours = pl.DataFrame(query.collect()).sort("at")
        theirs = pl.DataFrame(query.collect(engine="spark", session=spark)).sort("at")
        wrong += [text for name, text in some.items() if not ours[name].equals(theirs[name])]
    assert not wrong, (SEED, len(wrong), wrong[:10])
