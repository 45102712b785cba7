"""``generate:rate=100,seconds=60,keys=10,seed=1``: a workload written as a location.

``start=2024-01-01`` lets its times begin there, and not with 1970; ``start=now`` lets them be the
clock's.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from datetime import UTC, datetime

import polars as pl

from lowwater.errors import OptionError, unknown_name
from lowwater.sources.generate import Workload
from lowwater.sources.replay import Replay

START = "start"
_LISTS = ("phases",)
_KNOWN = {each.name: each for each in fields(Workload) if each.name not in _LISTS}


def generated(path: str) -> Replay:
    """The stream that a location describes; what is not said is as :class:`Workload` has it."""
    given: dict[str, str] = {}
    for part in filter(None, (each.strip() for each in path.split(","))):
        name, equals, value = (each.strip() for each in part.partition("="))
        if name not in (*_KNOWN, START):
            raise OptionError(unknown_name("setting of generate:", name, (*_KNOWN, START)))
        if not equals:
            raise OptionError(f"generate: takes name=value, for example rate=100, not {part!r}")
        given[name] = value
    start = given.pop(START, None)
    for name, field in _KNOWN.items():
        if field.default is MISSING and name not in given:
            raise OptionError(f"generate: needs {name}=, for example generate:rate=100,seconds=60")
    values = {name: _value(_KNOWN[name], text) for name, text in given.items()}
    table = Workload(**values).table()  # type: ignore[arg-type]
    return Replay(table if start is None else _moved(table, start), "arrived")


def _moved(table: pl.DataFrame, start: str) -> pl.DataFrame:
    try:
        begin = datetime.now(UTC) if start == "now" else datetime.fromisoformat(start)
    except ValueError:
        raise OptionError(f"generate: start is a time or 'now', not {start!r}") from None
    begin = begin if begin.tzinfo else begin.replace(tzinfo=UTC)
    if table.schema["ts"].is_integer():
        return table.with_columns(pl.col("ts") + int(begin.timestamp()))
    return table.with_columns(pl.col("ts") + (begin - datetime(1970, 1, 1, tzinfo=UTC)))


def _value(field: Field[object], text: str) -> int | float | str:
    if field.type == "str":
        return text
    try:
        return int(text) if field.type == "int" else float(text)
    except ValueError:
        kind = "a whole number" if field.type == "int" else "a number"
        raise OptionError(f"generate: {field.name} is {kind}, not {text!r}") from None
