"""Bring a source's chunk to the types its stream declared; times become ticks or nothing.

A time that cannot be one stays recognisable: NaN and infinities become null, values beyond what the
domain holds become a tick outside its valid range, so that the intake refuses them by name.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.errors import BadInput
from lowwater.progress.contract import Punctuated
from lowwater.progress.spec import StreamSpec
from lowwater.stream.element import END_OF_TIME, Chunk
from lowwater.stream.time_domain import TimeDomain

_MOST_SECONDS = 10**12
_MOST_DAYS = 4_000_000


def conform(
    spec: StreamSpec, chunk: Chunk, now: int, arrivals: NDArray[np.int64] | None = None
) -> Chunk:
    """The chunk with the declared columns and types.

    Rows of an internally stamped stream get the time at which they arrived: ``arrivals``, in
    nanoseconds of the engine's clock, or ``now`` where the source has no arrival times.
    """
    chunk = _typed(spec, chunk)
    if spec.stamp == "internal":
        clock = np.full(chunk.height, now) if arrivals is None else arrivals
        return chunk.hstack([pl.Series(spec.time, clock // 1_000).cast(pl.Datetime("us"))])
    if spec.stamp == "latent":
        return chunk
    changes = []
    for attribute, contract in spec.contracts.items():
        columns = [attribute]
        if isinstance(contract, Punctuated):
            columns.append(contract.column)
        for column in columns:
            change = _time(column, chunk.schema[column], spec.domains[attribute])
            if change is not None:
                changes.append(change)
    return chunk.with_columns(changes) if changes else chunk


def _typed(spec: StreamSpec, chunk: Chunk) -> Chunk:
    if chunk.columns == list(spec.schema) and chunk.dtypes == list(spec.schema.values()):
        return chunk
    missing = [name for name in spec.schema if name not in chunk.columns]
    if missing:
        raise BadInput(f"stream {spec.name!r}: rows lack column {missing[0]!r}")
    try:
        return chunk.select(pl.col(name).cast(dtype) for name, dtype in spec.schema.items())
    except pl.exceptions.PolarsError as error:
        raise BadInput(f"stream {spec.name!r}: rows have the wrong type: {error}") from None


def _time(column: str, have: pl.DataType, domain: TimeDomain) -> pl.Expr | None:
    """How to bring a time column to its domain; None if it is there."""
    if have == domain.dtype:
        return None
    source = pl.col(column)
    if have.is_float():
        seconds = pl.when(source.is_finite()).then(source.clip(-_MOST_SECONDS, _MOST_SECONDS))
        ticks = (seconds * 1e6).round().cast(pl.Int64)
    elif have == pl.Date:
        days = source.to_physical().cast(pl.Int64).clip(-_MOST_DAYS, _MOST_DAYS)
        ticks = days * (86_400 * 1_000_000)
    else:
        whole = source.cast(pl.Int64, strict=False)
        lost = whole.is_null() & source.is_not_null()
        ticks = pl.when(lost).then(pl.lit(END_OF_TIME)).otherwise(whole)
    return ticks.cast(domain.dtype).alias(column)
