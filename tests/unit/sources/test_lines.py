"""Lines of text as rows."""

from __future__ import annotations

import polars as pl
import pytest

import lowwater as lw
from lowwater.sources.lines import parse_lines

SCHEMA = {"k": pl.String(), "v": pl.Int64(), "ts": pl.Datetime("us")}
GOOD = [b"a,1,2024-01-01", b'{"v": 2, "ts": "2024-01-01T00:00:00Z"}', b"a"]


def test_lines_are_csv_or_json_and_may_leave_values_out() -> None:
    assert parse_lines(GOOD, SCHEMA)["v"].to_list() == [1, 2, None]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("a,one", "column v: 'one' is no BIGINT"),
        ("a,1,soon", "column ts: 'soon' is no TIMESTAMP"),
        ("a,1,2024-01-01,b", "too many values: 4 for 3 columns"),
        ('"a,1', "no row of (k STRING, v BIGINT, ts TIMESTAMP)"),
        ('{"v": "one"}', "column v: 'one' is no BIGINT"),
        ('{"v": 1', "no JSON object"),
    ],
)
def test_a_line_that_cannot_be_read_is_shown_and_says_why(line: str, why: str) -> None:
    with pytest.raises(lw.BadInput) as caught:
        parse_lines([*GOOD, line.encode()], SCHEMA)
    assert str(caught.value) == f"cannot read the line {line!r}: {why}"
