"""Approximate aggregates: sketches of a bounded size instead of all values.

A partial is either a sketch, as bytes, or a value that is in none yet; merging puts the values of a
group into a sketch in one call. Distinct values are counted by a theta sketch: exactly up to a few
thousand, beyond that by the least hashes, which are the same in whatever order values came.
Quantiles are taken from a t-digest, most exact at both ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

Steps = tuple[pl.Expr, pl.Expr, pl.Expr]
"""How rows are lifted, partials merged and answers finished."""
LG_HASHES = 12
"""A theta sketch keeps two to this power of hashes: a standard error of 1.6 %."""
CENTROIDS = 500
"""The compression of a t-digest: about half a percent off in rank in the middle, in 9 KB."""


def approx_count_distinct(name: str, value: pl.Expr, dtype: pl.DataType) -> Steps:
    """About how many distinct values there are."""
    if not (dtype.is_integer() or dtype.is_float() or dtype == pl.String):
        value, dtype = value.cast(pl.String), pl.String()
    return _sketched(f"{name}__theta", value, dtype, _distinct, _estimate, pl.Int64())


def approx_quantile(name: str, value: pl.Expr, share: float) -> Steps:
    """About the value below which this share of all values lies."""

    def finish(state: bytes) -> float | None:
        digest = _sketches().tdigest_double.deserialize(state)
        return None if digest.is_empty() else float(digest.get_quantile(share))

    number = value.cast(pl.Float64)
    return _sketched(f"{name}__digest", number, pl.Float64(), _digest, finish, pl.Float64())


def _sketched(
    part: str,
    value: pl.Expr,
    dtype: pl.DataType,
    fold: Callable[[pl.Series, list[bytes]], bytes],
    finish: Callable[[bytes], Any],
    answer: pl.DataType,
) -> Steps:
    shape = pl.Struct({"state": pl.Binary(), "row": dtype})

    def folded(parts: pl.Series) -> pl.Series:
        states, rows = parts.struct.field("state"), parts.struct.field("row")
        state = fold(rows.drop_nulls(), states.drop_nulls().to_list())
        return pl.Series([{"state": state, "row": None}], dtype=shape)

    lifted = pl.struct(pl.lit(None, dtype=pl.Binary).alias("state"), value.alias("row"))
    merged = pl.col(part).map_batches(folded, return_dtype=shape, returns_scalar=True)
    finished = pl.col(part).struct.field("state").map_elements(finish, return_dtype=answer)
    return lifted.alias(part), merged, finished


def _distinct(values: pl.Series, states: list[bytes]) -> bytes:
    sketches = _sketches()
    union = sketches.theta_union(LG_HASHES)
    fresh = sketches.update_theta_sketch(LG_HASHES)
    for value in values.unique().to_list():
        fresh.update(value)
    union.update(fresh)
    for state in states:
        union.update(sketches.compact_theta_sketch.deserialize(state))
    return bytes(union.get_result().serialize())


def _estimate(state: bytes) -> int:
    estimate: float = _sketches().compact_theta_sketch.deserialize(state).get_estimate()
    return round(estimate)


def _digest(values: pl.Series, states: list[bytes]) -> bytes:
    digest_of = _sketches().tdigest_double
    digest = digest_of(CENTROIDS)
    for state in states:
        digest.merge(digest_of.deserialize(state))
    if len(values):
        digest.update(values.sort().to_numpy(writable=True))
    return bytes(digest.serialize())


def _sketches() -> Any:
    """The library, loaded by those who use it."""
    import datasketches  # noqa: PLC0415

    return datasketches
