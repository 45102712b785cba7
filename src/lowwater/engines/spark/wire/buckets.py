"""Spark distributes buckets, not the user's keys.

A row's bucket follows from its key columns; the bucket's *id* is chosen so that Spark's own hash
puts every bucket into a shuffle partition of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce
from operator import xor

import polars as pl

from lowwater.stream.element import Chunk

KeyColumns = Sequence[tuple[str, pl.DataType]]
BUCKET = "__bucket"
_MASK = 0xFFFFFFFF


@cache
def bucket_ids(count: int) -> tuple[int, ...]:
    """Return the ids of ``count`` buckets, one for each of ``count`` shuffle partitions."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < count:
        found.setdefault(spark_hash(candidate) % count, candidate)
        candidate += 1
    return tuple(found[partition] for partition in range(count))


def spark_hash(value: int, seed: int = 42) -> int:
    """Return Spark's hash of an int, as a signed number."""
    k = (value * 0xCC9E2D51) & _MASK
    k = (_rotated(k, 15) * 0x1B873593) & _MASK
    h = _rotated(seed ^ k, 13)
    h = (h * 5 + 0xE6546B64) & _MASK
    h ^= 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = ((h ^ (h >> shift)) * factor) & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _rotated(value: int, by: int) -> int:
    return ((value << by) | (value >> (32 - by))) & _MASK


def hash_probe() -> int:
    """Return a number that changes if keys are hashed in another way; a checkpoint keeps it."""
    probe = pl.DataFrame({"i": [1, -7, None], "s": ["a", "é", None], "f": [0.0, 1.5, None]})
    number = probe.select(_hashed([("i", pl.Int64()), ("s", pl.String()), ("f", pl.Float64())]))
    return int(number.to_series().reinterpret(signed=True).sum())


def spread(chunk: Chunk, key: KeyColumns, count: int) -> list[tuple[int, Chunk]]:
    """Return a chunk cut by bucket number; rows with equal keys have the same."""
    if count == 1 or not key:
        return [(0, chunk)]
    numbers = chunk.select((_hashed(key) % count).alias(BUCKET))[BUCKET]
    parts = ((number, chunk.filter(numbers == number)) for number in range(count))
    return [(number, part) for number, part in parts if part.height]


def _hashed(key: KeyColumns) -> pl.Expr:
    columns = (_comparable(pl.col(name), dtype) for name, dtype in key)
    return reduce(xor, (column.hash(seed) for seed, column in enumerate(columns, 7)))


def _comparable(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    cast = column.cast(dtype, strict=False)
    if dtype.is_float():  # one zero, and one NaN, which joins treat like a null
        return (cast + 0.0).fill_nan(None)
    return cast
