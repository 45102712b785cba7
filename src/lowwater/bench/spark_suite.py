"""``lowwater bench spark``: ours against plain Spark, the better of its two state stores.

Both sides read the same Parquet files in the same order, as many a batch, in one session with the
same settings, and write Parquet. They take turns. What they answered is compared window by window.
``LOWWATER_BENCH_SCALE=0.1`` makes everything but the small batches that much smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lowwater.bench.spark_closes import run_closes
from lowwater.bench.spark_compare import Row
from lowwater.bench.spark_groups import run_groups
from lowwater.bench.spark_large import run_growth, run_w1, run_w2, run_w3
from lowwater.bench.spark_live import run_w4
from lowwater.bench.spark_oblivious import run_oblivious
from lowwater.bench.spark_ordered import run_ordered
from lowwater.bench.spark_small import run_small
from lowwater.bench.spark_updates import run_updates

PARTS: Mapping[str, Callable[[], Iterator[Row]]] = {
    "W1": run_w1,
    "W2": run_w2,
    "W3": run_w3,
    "W4": run_w4,
    "closes": run_closes,
    "small": run_small,
    "groups": run_groups,
    "ordered": run_ordered,
    "oblivious": run_oblivious,
    "updates": run_updates,
    "growth": run_growth,
}
"""Parts that can be run by themselves, by name."""


def run_spark() -> Iterator[Row]:
    """All parts."""
    for part in PARTS.values():
        yield from part()
