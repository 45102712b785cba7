"""An expression sees one row: no other rows, no clock."""

from __future__ import annotations

import polars as pl
import pytest

import lowwater as lw


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("row_number() OVER (PARTITION BY k)", "looks at other rows"),
        ("row_number()", "looks at other rows"),
        ("lag(k) OVER (ORDER BY ts)", "looks at other rows"),
        ("now()", "reads a clock"),
        ("current_timestamp", "reads a clock"),
        ("sum(k)", "is an aggregate"),
    ],
)
def test_what_depends_on_anything_but_the_row_is_refused(text: str, why: str) -> None:
    stream = lw.stream(pl.DataFrame({"ts": [1], "k": [2]}), name="s", time="ts")
    with pytest.raises(lw.ExpressionError, match=why):
        stream.map(x=text)
