"""Errors of every layer on a page that must not show rows: none of their values is told."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lowwater as lw
from tests.unit.running import LONG

SECRET = "swordfish"
ROWS = pl.DataFrame({"ts": [5, 1], "who": [SECRET, SECRET], "n": [1, 0]})


def fails_with_rows(rows: pl.DataFrame) -> pl.DataFrame:
    raise ValueError(f"no such person: {rows['who'][0]}")


def fails_to_take(table: pa.Table) -> None:
    raise ValueError(f"cannot write {table.to_pylist()}")


def rows(**options: Any) -> lw.Stream:
    return lw.stream(ROWS, name="s", time="ts", **options)


def own() -> lw.aggregate:
    def add(state: Any, chunk: pl.DataFrame) -> Any:
        raise KeyError(chunk["who"].to_list())

    return lw.aggregate(init=int, add=add, merge=max, finish=float, columns=("who",))


CASES: dict[str, Callable[[], tuple[lw.Stream, dict[str, Any]]]] = {
    "function": lambda: (rows().apply(fails_with_rows), {}),
    "aggregate": lambda: (rows().window("1 minute").agg(x=own()), {}),
    "expression": lambda: (rows().map(x="CAST(who AS BIGINT)"), {}),
    "sink": lambda: (rows(), {"sink": fails_to_take}),
    "late sink": lambda: (rows(), {"late_sink": fails_to_take}),
    "broken promise": lambda: (rows(late="fail"), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_no_value_of_a_row_is_told(case: str, tmp_path: Path) -> None:
    query, options = CASES[case]()
    run = query.run(**options, dashboard=lw.dashboard(save=tmp_path))
    with pytest.raises(lw.LowwaterError):
        run.await_termination(LONG)
    assert run.dashboard is not None
    run.dashboard.settle()
    for path in ("api/state", "api/history", "metrics"):
        with urllib.request.urlopen(f"{run.dashboard.url}{path}", timeout=30) as answer:
            told = answer.read().decode()
        assert SECRET not in told, path
    run.dashboard.close()
    for file in (each for each in tmp_path.rglob("*") if each.is_file()):
        assert SECRET.encode() not in file.read_bytes(), file.name
