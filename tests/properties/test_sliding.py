"""Windows that slide on change: what they answer follows from the rows alone."""

from __future__ import annotations

from typing import Any
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from lowwater.state import keyed_rows
from tests.properties.test_kernels import check
from tests.support.oracle import on_change
from tests.support.streams import Sample, samples

AGGREGATES = {
    "n": ("count(*)", "count(r.ts)"),
    "nv": ("count(v)", "count(r.v)"),
    "total": ("sum(v)", "CAST(sum(r.v) AS BIGINT)"),
    "quarters": ("sum(v / 4.0)", "sum(r.v / 4.0)"),
    "mean": ("avg(v)", "avg(r.v)"),
    "least": ("min(v)", "min(r.v)"),
    "most": ("max(v + k)", "max(r.v + r.k)"),
    "word": ("max(s)", "max(r.s)"),
    "kinds": ("count(DISTINCT v)", "count(DISTINCT r.v)"),
    "words": (
        "count(DISTINCT s) FILTER (WHERE v > 0)",
        "count(DISTINCT CASE WHEN r.v > 0 THEN r.s END)",
    ),
}
NAMES = st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, unique=True)
KEYS = st.sampled_from([(), ("k",), ("k", "s")])


@given(samples("a"), samples("b"), st.integers(1, 60), KEYS, NAMES, st.data())
def test_sliding_equals_batch(
    a: Sample, b: Sample, size: int, keys: tuple[str, ...], names: list[str], data: Any
) -> None:
    query = (
        a.stream.union(b.stream)
        .window(size, slide="on change")
        .group_by(*keys)
        .agg(**{name: AGGREGATES[name][0] for name in names})
    )
    wanted = {name: AGGREGATES[name][1] for name in names}
    sql = on_change("(SELECT * FROM a UNION ALL SELECT * FROM b)", str(size), wanted, keys)
    with mock.patch.object(keyed_rows, "ROWS_PER_SLICE", data.draw(st.sampled_from([1, 4_096]))):
        check(query, sql, data, a, b)
