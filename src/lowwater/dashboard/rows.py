"""Rows for looking at, as texts: the last answers of each query and the last late rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from lowwater.dashboard.watched import Watched


def last_rows(watched: Sequence[Watched]) -> dict[str, Any]:
    """Those of all queries, the newest first."""
    return {
        "queries": {
            each.id: {"answers": _texts(each.run.last_rows()), "late": _texts(_late(each))}
            for each in watched
        }
    }


def _late(watched: Watched) -> pl.DataFrame:
    """The late rows of all streams, with the stream if there are several."""
    found = {name: watched.run.last_late_rows(name) for name in watched.specs}
    some = [
        rows.select(pl.lit(name).alias("_stream"), pl.all()) if len(found) > 1 else rows
        for name, rows in found.items()
        if rows.height
    ]
    return pl.concat(some, how="diagonal_relaxed") if some else pl.DataFrame()


def _texts(rows: pl.DataFrame) -> dict[str, Any]:
    shown = [["" if each is None else str(each) for each in row] for row in rows.reverse().rows()]
    return {"columns": rows.columns, "rows": shown}
