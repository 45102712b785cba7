"""Every query of the list on every engine: the answers of the oracle, the columns as declared."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from functools import cache
from typing import Any

import polars as pl
import pytest

from lowwater.plan.physical.operator import PlanShape
from tests.conformance.engines import Engine
from tests.conformance.logs import world
from tests.conformance.queries import CASES, Case
from tests.support.oracle import answer, table_rows

NAMED = [pytest.param(case, id=case.name) for case in CASES]
PLANS = [
    pytest.param(case, shape, id=f"{case.name}-{shape}") for case in CASES for shape in case.shapes
]


@cache
def expected(case: Case) -> Counter[tuple[Any, ...]]:
    return answer(case.sql, world().tables)


def in_utc(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """The oracle tells no zones."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row, count in rows.items():
        found[tuple(map(_naive, row))] += count
    return found


def _naive(value: Any) -> Any:
    zoned = isinstance(value, datetime) and value.tzinfo is not None
    return value.astimezone(UTC).replace(tzinfo=None) if zoned else value


@pytest.mark.parametrize(("case", "shape"), PLANS)
def test_answers_are_those_of_the_oracle(case: Case, shape: PlanShape, engine: Engine) -> None:
    query = case.build(world())
    found = engine.collect(query, plan=shape, chunk_rows=case.chunk_rows, buckets=case.buckets)
    frame = pl.DataFrame(found)
    assert dict(frame.schema) == query.schema
    assert in_utc(table_rows(frame)) == expected(case)


@pytest.mark.parametrize("case", NAMED)
def test_the_in_order_plan_gives_the_same_answers_row_by_row(case: Case) -> None:
    query = case.build(world())
    found = query.collect(plan="in-order", chunk_rows=1)
    assert in_utc(table_rows(found)) == expected(case)


def test_every_query_has_an_answer() -> None:
    """A query that gives nothing would prove nothing."""
    assert [case.name for case in CASES if len(expected(case)) < 2] == ["stamped_over_everything"]
