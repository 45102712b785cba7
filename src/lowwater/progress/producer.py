"""Promises that a producer makes beside its rows: as it wrote them, and in ticks (OOP §5.1).

A promise is of the whole stream, or of one channel or group of it. Its parts are checked against
the declaration of the stream: the columns must progress, and the name must be one that the stream's
channels or groups can have.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from math import isfinite
from typing import TypeGuard

import polars as pl

from lowwater.errors import OptionError
from lowwater.progress.spec import StreamSpec, channel_name
from lowwater.stream.time_domain import TimeDomain


@dataclass(frozen=True, slots=True)
class ProducerPromise:
    """A promise as a producer wrote it."""

    bounds: tuple[tuple[str | None, object], ...]
    """Columns, each with the least value of rows to come; None is the main time."""
    channel: object = None
    """The channel that it is about; None if it is about no single channel."""
    group: object = None
    """The group that it is about; None if it is about no single group."""
    ends: bool = False
    """True if no more rows of the channel or group come, whatever the bounds."""


@dataclass(frozen=True, slots=True)
class PromisedMarks:
    """A promise of a producer in ticks."""

    bounds: Mapping[str, int]
    """By attribute."""
    name: Hashable
    """The channel or group; None for the whole stream."""
    ends: bool = False
    """True if no more rows of the channel or group come."""


def resolve(spec: StreamSpec, promise: ProducerPromise) -> PromisedMarks:
    """Return a promise in ticks; raise an error if it has no meaning for a stream."""
    bounds = {}
    for column, value in promise.bounds:
        attribute = spec.time if column is None else column
        bounds[attribute] = _ticks(spec, attribute, value)
    if len(bounds) > 1 and promise.group is not None:
        raise OptionError(
            f"stream {spec.name!r}: a joint promise is of the stream or of a channel; promise each"
            " column of the group by itself: punctuate('ts', 10, group=...)"
        )
    return PromisedMarks(bounds, _name(spec, promise), promise.ends)


def _ticks(spec: StreamSpec, attribute: str, value: object) -> int:
    domain = spec.domains.get(attribute)
    if domain is None or spec.stamp != "external":
        raise OptionError(f"stream {spec.name!r} takes no promises on {attribute!r}")
    if spec.schema[attribute].is_float() and _finite(value):
        return round(value * domain.ticks_per_second)
    return _ticks_of(spec, domain, attribute, value)


def _ticks_of(spec: StreamSpec, domain: TimeDomain, attribute: str, value: object) -> int:
    fits = datetime | date if isinstance(domain.dtype, pl.Datetime) else int
    if not isinstance(value, fits) or isinstance(value, bool):
        raise OptionError(
            f"stream {spec.name!r}: a promise on {attribute!r} is of type"
            f" {domain.dtype}, not {value!r}"
        )
    return int(domain.ticks_of(pl.Series([value], dtype=domain.dtype))[0])


def _finite(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and isfinite(value)


def _name(spec: StreamSpec, promise: ProducerPromise) -> Hashable:
    """Return the channel or group that a promise is about; None for the whole stream."""
    where = f"stream {spec.name!r}"
    if promise.channel is not None:
        if spec.groups:
            raise OptionError(
                f"{where} has groups, by {', '.join(spec.groups)}, and no channels; name the group:"
                f" group={promise.channel!r}"
            )
        if not spec.channel:
            raise OptionError(
                f"{where} has no channels, so nothing can be promised for one of them; leave"
                " channel= out, or declare them where the stream is made: channel='device'"
            )
        return _key(spec, {spec.channel: promise.channel})
    if promise.group is not None:
        if spec.channel:
            raise OptionError(
                f"{where} has channels, by {spec.channel}, and no groups; name the channel:"
                f" channel={promise.group!r}"
            )
        if not spec.groups:
            raise OptionError(
                f"{where} has no groups, so nothing can be promised for one of them; leave group="
                " out, or declare them where the stream is made: groups='device'"
            )
        return _key(spec, _by_column(spec, promise.group))
    return None


def _by_column(spec: StreamSpec, group: object) -> dict[str, object]:
    """Return the values that name a group by column."""
    columns = spec.groups
    if isinstance(group, Mapping):
        if set(group) == set(columns):
            return {column: group[column] for column in columns}
    else:
        parts = group if isinstance(group, tuple) else (group,)
        if len(parts) == len(columns):
            return dict(zip(columns, parts, strict=True))
    form = "a value" if len(columns) == 1 else "a tuple of values"
    raise OptionError(
        f"stream {spec.name!r}: a group is named by {', '.join(columns)}: give {form}, or a mapping"
        f" of columns to values, not {group!r}"
    )


def _key(spec: StreamSpec, values: Mapping[str, object]) -> Hashable:
    """Return the name of a channel or group, with values of its columns' types."""
    parts = []
    for column, value in values.items():
        dtype = spec.schema[column]
        try:
            read = pl.Series([value], dtype=dtype, strict=True)[0]
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
            read = None
        if read is None or read != value:
            raise OptionError(
                f"stream {spec.name!r}: column {column!r} is of type {dtype}, and no value of it is"
                f" {value!r}"
            )
        parts.append(read)
    return channel_name(parts)
