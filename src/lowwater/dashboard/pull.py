"""Programs pull the newest answers of runs as JSON: of one key, or of all up to a limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lowwater.dashboard.observation import WatchedQuery
from lowwater.engines.answers import REFUSAL
from lowwater.errors import OptionError, unknown_name

LIMIT, MOST = 1_000, 100_000
"""Number of answers in a table if no limit is given, and the greatest limit."""


def latest_json(queries: Sequence[WatchedQuery], query: str | None, key: Sequence[str]) -> Any:
    """Return the newest answer of a key, given as texts in the order of the key columns."""
    found = _query(queries, query)
    puller = found.run.puller
    assert puller is not None
    values = puller.key_from_texts(key)
    answer = found.run.latest(values)
    shown = None if answer is None else {name: _plain(each) for name, each in answer.items()}
    return {"query": found.id, "key": [_plain(each) for each in values], "answer": shown}


def table_json(queries: Sequence[WatchedQuery], query: str | None, limit: str | None) -> Any:
    """Return the newest answers, the key that was answered last first, at most ``limit`` of
    them."""
    found = _query(queries, query)
    most = _limit(limit)
    table = found.run.table()
    rows = table.slice(max(0, table.num_rows - most)).to_pylist()
    return {
        "query": found.id,
        "keys": table.num_rows,
        "limit": most,
        "columns": table.column_names,
        "types": [str(each.type) for each in table.schema],
        "rows": [[_plain(each) for each in row.values()] for row in reversed(rows)],
    }


def _query(queries: Sequence[WatchedQuery], given: str | None) -> WatchedQuery:
    """Return the query that is named, or else the only one with an update key."""
    if given is not None:
        named = next((each for each in queries if each.id == given), None)
        if named is None:
            raise OptionError(unknown_name("query", given, [each.id for each in queries]))
        if named.run.puller is None:
            raise OptionError(REFUSAL)
        return named
    keyed = [each for each in queries if each.run.puller is not None]
    if not keyed:
        raise OptionError(REFUSAL)
    if len(keyed) > 1:
        known = ", ".join(each.id for each in keyed)
        raise OptionError(f"several queries have an update key: say query= one of {known}")
    return keyed[0]


def _limit(given: str | None) -> int:
    if given is None:
        return LIMIT
    if not (given.isascii() and given.isdigit() and 0 < int(given) <= MOST):
        raise OptionError(f"limit= is a whole number from 1 to {MOST:,}, not {given!r}")
    return int(given)


def _plain(value: object) -> Any:
    """Return a value as JSON has it; other values, such as times, as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    return str(value)
