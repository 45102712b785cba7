"""Approximate aggregates, by sketches of a bounded size.

A partial is either a sketch, as bytes, or a value that is in no sketch yet; merging puts the values
of a group into a sketch in one call. Distinct values are counted by a theta sketch: exactly up to a
few thousand, beyond that by the least hashes, which do not depend on the order of the values.
Quantiles are taken from a t-digest, which is most exact at both ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

Steps = tuple[pl.Expr, pl.Expr, pl.Expr]
"""The three expressions of an aggregate: lift rows, merge partials, finish answers."""
LG_HASHES = 12
"""Number of hashes of a theta sketch, as a power of two: a standard error of 1.6 %."""
CENTROIDS = 500
"""Compression of a t-digest: the rank is half a percent off in the middle, in 9 KB."""


def approx_count_distinct(name: str, value: pl.Expr, dtype: pl.DataType) -> Steps:
    """Return the steps that count distinct values, approximately."""
    if not (dtype.is_integer() or dtype.is_float() or dtype == pl.String):
        value, dtype = value.cast(pl.String), pl.String()
    return _sketched(f"{name}__theta", value, dtype, _distinct, _estimate, pl.Int64())


def approx_quantile(name: str, value: pl.Expr, share: float) -> Steps:
    """Return the steps that find a quantile, approximately; ``share`` is from 0 to 1."""

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
    """Return the library of sketches, which is loaded only when it is needed."""
    import datasketches  # noqa: PLC0415

    return datasketches
