"""Windows that slide by rows: what they answer follows from the rows alone."""

from __future__ import annotations

from typing import Any
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from lowwater.state import keyed_rows
from tests.properties.test_kernels import check
from tests.support.oracle import last_rows
from tests.support.streams import Sample, samples

AGGREGATES = {
    "n": ("count(*)", "count(*)"),
    "total": ("sum(v)", "CAST(sum(b.v) AS BIGINT)"),
    "mean": ("avg(v)", "avg(b.v)"),
    "most": ("max(s)", "max(b.s)"),
    "spread": ("stddev(v)", "stddev(b.v)"),
    "kinds": ("count(DISTINCT v)", "count(DISTINCT b.v)"),
    "first": ("first(v)", "first(b.v ORDER BY b.ts, b.v) FILTER (b.v IS NOT NULL)"),
    "all": ("collect(v)", "coalesce(list(b.v ORDER BY b.ts, b.v) FILTER (b.v IS NOT NULL), [])"),
}
NAMES = st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, unique=True)


def ties(names: list[str]) -> list[str]:
    """The columns that aggregates read, in the order of the stream."""
    read = {"n": "", "most": "s"}
    return [each for each in ("s", "v") if each in {read.get(name, "v") for name in names}]


@given(
    samples("a"),
    samples("b"),
    st.none() | st.integers(1, 6),
    st.integers(1, 30),
    st.integers(1, 5),
    st.sampled_from([(), ("k",), ("k", "s")]),
    st.none() | st.integers(1, 20),
    NAMES,
    st.data(),
)
def test_windows_that_slide_by_rows_equal_batch(
    a: Sample,
    b: Sample,
    rows: int | None,
    length: int,
    slide: int,
    keys: tuple[str, ...],
    expire: int | None,
    names: list[str],
    data: Any,
) -> None:
    if rows is not None and not keys:
        keys = ("k",)
    if not keys:
        expire = None
    elif expire is not None and rows is None:
        expire += length
    united = a.stream.union(b.stream)
    window = united.window(
        length if rows is None else None,
        rows=rows,
        slide_rows=slide,
        by=keys or None,
        expire=expire,
    )
    query = window.agg(**{name: AGGREGATES[name][0] for name in names})
    sql = last_rows(
        "(SELECT * FROM a UNION ALL SELECT * FROM b)",
        {name: AGGREGATES[name][1] for name in names},
        rows=rows,
        length=length,
        slide=slide,
        keys=keys,
        ties=ties(names),
        expire=expire,
    )
    with mock.patch.object(keyed_rows, "ROWS_PER_SLICE", data.draw(st.sampled_from([1, 4_096]))):
        check(query, sql, data, a, b)
