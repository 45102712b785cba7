"""Builders of unions check that the streams fit, and bring their times together.

A union progresses on the columns on which every one of its inputs progresses, in one type and unit.
Other columns make no promise beyond it; ``explain`` names them with the reason. With ``time=`` the
streams get common times first: a column of each becomes one column of all, in the finest unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from lowwater.errors import OptionError, QueryError
from lowwater.operators.checked import Failure, checked
from lowwater.operators.rowwise import Derivation
from lowwater.plan import nodes
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.builders.rows import check_name, with_time
from lowwater.plan.expressions import Expression
from lowwater.plan.main_time import COMMON_TIME, common_time, stream_names
from lowwater.plan.nodes import Node, Progressing
from lowwater.stream.time_domain import UNITS, TimeDomain

Times = Mapping[str, str | Sequence[str]]
"""The common times of a union: by its name, the column of each stream; a text if all call it
alike."""


def united(
    inputs: Sequence[Node],
    origin: str,
    prefer: Node | str | None = None,
    time: Times | None = None,
) -> Node:
    """Return the union of several inputs; of update streams, the newest row of each key.

    ``prefer`` is the update stream whose row is shown if two streams have a row of one key and
    time. ``time`` are the columns that become common times.
    """
    if len(inputs) < 2:
        raise OptionError("union needs at least two streams")
    if all(each.updates is None for each in inputs):
        if prefer is not None:
            raise OptionError("prefer= is for unions of update streams; here all rows come out")
        return _united(_with_times(inputs, time), origin, next(iter(time)) if time else None)
    if time is not None:
        raise OptionError(
            "time= is for unions of rows: bring the times of update streams together before"
            " updates(...) makes them such"
        )
    _refuse_unlike(inputs)
    parts = update_builders.parts_of_union(inputs)
    by = inputs[0].updates
    assert by is not None
    rows = _united([each for own in parts for each in own], origin)
    return update_builders.united(rows, by, update_builders.preferred(inputs, parts, prefer))


def _refuse_unlike(inputs: Sequence[Node]) -> None:
    first = inputs[0]
    for other in inputs[1:]:
        if dict(other.schema) == dict(first.schema) and list(other.schema) == list(first.schema):
            continue
        wrong = [
            name
            for name, dtype in first.schema.items()
            if other.schema.get(name, dtype) != dtype
            and all(name in each.progress for each in inputs)
        ]
        raise QueryError(
            "union needs streams with the same columns:"
            f" {_spell(first.schema)} against {_spell(other.schema)}",
            *([". ", *common_time(wrong[0], [wrong[0]] * len(inputs), inputs)] if wrong else []),
        )


def _united(inputs: Sequence[Node], origin: str, main: str | None = None) -> nodes.UnionNode:
    first = inputs[0]
    _refuse_unlike(inputs)
    progress = {
        name: Progressing(each.domain, any(n.progress[name].nullable for n in inputs))
        for name, each in first.progress.items()
        if all(name in n.progress and n.progress[name].domain == each.domain for n in inputs)
    }
    for name, each in progress.items():
        behind = {}
        for column in progress:
            lags = [lag for n in inputs if (lag := n.lag(name, column)) is not None]
            if column != name and len(lags) == len(inputs):
                behind[column] = max(lags)
        progress[name] = replace(each, behind=behind)
    if first.progress and not progress and all(n.progress for n in inputs):
        raise _nothing_in_common(inputs)
    usable = [name for name, attribute in progress.items() if not attribute.nullable]
    time = main or first.time
    time = time if time in usable else None  # no other time in its place
    return nodes.UnionNode(tuple(inputs), first.schema, progress, time, origin=origin)


def _nothing_in_common(inputs: Sequence[Node]) -> QueryError:
    """Return the error for streams that all progress, and together on no column."""
    promised = (
        f"{stream_names(each)} promises {', '.join(map(_in_unit, each.progress.items()))}"
        for each in inputs
    )
    columns = [each.time or next(iter(each.progress)) for each in inputs]
    return QueryError(
        "union: the streams progress on different columns or count time in different units, so"
        f" nothing could be promised of all rows: {'; '.join(promised)}. ",
        *common_time(columns[0], columns, inputs),
    )


def _in_unit(attribute: tuple[str, Progressing]) -> str:
    name, each = attribute
    return f"{name} in {unit_of(each.domain)}"


def unit_of(domain: TimeDomain) -> str:
    """Return the unit and type in which a domain counts, in words."""
    unit = next((unit for unit, rate in UNITS.items() if rate == domain.ticks_per_second), "rows")
    if not isinstance(domain.dtype, pl.Datetime):
        return unit
    zone = domain.dtype.time_zone
    return f"timestamps of {unit}" + (f" in {zone}" if zone else "")


def _spell(schema: Mapping[str, pl.DataType]) -> str:
    return "(" + ", ".join(f"{name} {dtype}" for name, dtype in schema.items()) + ")"


# ---- common times ------------------------------------------------------------------------------


def _with_times(inputs: Sequence[Node], times: Times | None) -> Sequence[Node]:
    """Return the inputs, each with the common times."""
    if times is None:
        return inputs
    if not isinstance(times, Mapping) or not times:
        raise OptionError(f"{COMMON_TIME}, not {times!r}")
    found = list(inputs)
    for name, given in times.items():
        check_name(name)
        columns = [given] * len(inputs) if isinstance(given, str) else list(given)
        if len(columns) != len(inputs) or not all(isinstance(each, str) for each in columns):
            raise OptionError(
                f"time={{{name!r}: ...}} names one column of each of the {len(inputs)} streams,"
                f" not {given!r}"
            )
        domains = [
            node.progressing(column, "union(time=...)")
            for node, column in zip(inputs, columns, strict=True)
        ]
        common = _common(name, domains)
        found = [
            _with_time(node, name, column, domain, common)
            for node, column, domain in zip(found, columns, domains, strict=True)
        ]
    return found


def _common(name: str, domains: Sequence[TimeDomain]) -> TimeDomain:
    """Return the domain that the times of all streams have together: the finest unit."""
    if len(set(domains)) == 1:
        return domains[0]
    if any(each.counts_rows for each in domains):
        raise QueryError(f"time={{{name!r}: ...}}: numbers of rows or buckets are no common time")
    dated = [each.dtype for each in domains if isinstance(each.dtype, pl.Datetime)]
    zones = {each.time_zone for each in dated}
    if len(zones) > 1:
        shown = " and ".join(sorted(str(zone or "none") for zone in zones))
        raise QueryError(
            f"time={{{name!r}: ...}}: the times are in different time zones ({shown}); bring them"
            " to one before they are declared as streams"
        )
    rate = max(each.ticks_per_second for each in domains)
    if not dated:
        return TimeDomain(pl.Int64(), rate)
    unit = next(unit for unit, each in UNITS.items() if each == rate)
    return TimeDomain(pl.Datetime(unit, zones.pop()), rate)  # type: ignore[arg-type]


def _with_time(node: Node, name: str, column: str, own: TimeDomain, common: TimeDomain) -> Node:
    """Return a node with a time column in a domain that is as fine as its own or finer."""
    scale = common.ticks_per_second // own.ticks_per_second if own != common else 1
    ticks = own.to_ticks(pl.col(column))
    failures = []
    if own != common:
        low, high = common.valid
        outside = (ticks < -(-low // scale)) | (ticks > (high - 1) // scale)
        failures.append(Failure(outside, f"{column}: a time does not fit {unit_of(common)}"))
    value = checked(common.from_ticks(ticks * scale), common.dtype, failures)
    shown = column if own == common else f"{column} in {unit_of(common)}"
    derivation = Derivation(((column, 0),), scale=scale)
    if own == common and column == name:
        return node
    return with_time(node, name, Expression(shown, value, common.dtype), derivation, common)
