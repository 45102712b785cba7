"""Partials of many overlapping spans of rows, each merged from few blocks.

Rows are merged two by two, the results two by two, and so on: a block of a level has twice the rows
of one of the level below. A span is put together from at most two blocks of each level. So all
spans take time in proportion to the rows, and to the spans times the logarithm of their length.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.operators.aggregates import Aggregate, merge
from lowwater.stream.element import Chunk

_SPAN = "__span"
Positions = NDArray[np.int64]


def merge_spans(
    partials: Chunk, starts: Positions, ends: Positions, aggregates: Sequence[Aggregate]
) -> Chunk:
    """Return one partial for each span, in the order of the spans.

    ``partials`` are those of the rows, in order; a span has the rows from ``starts`` to before
    ``ends`` and is not empty.
    """
    found: list[Chunk] = []
    spans, low, high = np.arange(len(starts)), starts.copy(), ends.copy()
    level = partials
    while len(spans):
        first, last = low % 2 == 1, high % 2 == 1
        high[last] -= 1
        for numbers, blocks in ((spans[first], low[first]), (spans[last], high[last])):
            if len(numbers):
                found.append(level[blocks].insert_column(0, pl.Series(_SPAN, numbers)))
        low, high = (low + 1) // 2, high // 2
        left = low < high
        spans, low, high = spans[left], low[left], high[left]
        if len(spans):
            pairs = pl.Series(_SPAN, np.arange(level.height) // 2)
            level = merge(level.insert_column(0, pairs), [_SPAN], aggregates)
            level = level.sort(_SPAN).drop(_SPAN)
    blocks_of_all = pl.concat(found, how="vertical_relaxed")
    return merge(blocks_of_all, [_SPAN], aggregates).sort(_SPAN).drop(_SPAN)
