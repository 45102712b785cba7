"""From rows and promises to messages: the sending half of every stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from lowwater.engines.spark.buckets import spread
from lowwater.engines.spark.message import Kind, Message, packed, pickled
from lowwater.engines.spark.program import Delivery, Route, idle_kernel, reducing
from lowwater.engines.step import step
from lowwater.operators.kernel import Reducing
from lowwater.stream.element import Chunk, Element

SAMPLE = 16_384
WORTH = 0.5
"""Rows are reduced before they are sent if that leaves at most this share of them."""


def deliver_raw(
    port: int, rows: Chunk, delivery: Delivery, partition: int, at: int
) -> Iterator[Message]:
    """Rows that will be judged where they arrive."""
    for number, part in _spread(rows, delivery, partition):
        yield Message(delivery.stage, delivery.ids[number], port, Kind.RAW, -1, at, packed(part))


def deliver(
    rows: Chunk, delivery: Delivery, partition: int, at: int, tried: dict[int, bool]
) -> Iterator[Message]:
    """Rows that were let in, through the row-wise operators and reduced where that is worth it.

    ``tried`` remembers for which operators it is.
    """
    prefix = [(idle_kernel(part), part) for part in delivery.prefix]
    reducer = reducing(delivery.reducer) if delivery.reducer else None
    for number, share in _spread(rows, delivery, partition):
        part = share
        for kernel, operator in prefix:
            passed = step(kernel, 0, part, operator.where) if part.height else ()
            chunks = [each for each in passed if isinstance(each, pl.DataFrame)]
            part = chunks[0] if chunks else part.clear()
        if not part.height:
            continue
        bucket = delivery.ids[number]
        port, kind = delivery.end, Kind.ROWS
        if reducer is not None and delivery.reducer is not None:
            target = delivery.reducer.index
            if target not in tried:
                tried[target] = _worth(reducer, part)
            if tried[target]:
                port, kind, part = target, Kind.PARTIALS, reducer.reduced(part)
        yield Message(delivery.stage, bucket, port, kind, -1, at, packed(part))


def _worth(reducer: Reducing, rows: Chunk) -> bool:
    """Whether reducing rows leaves clearly fewer of them, going by a piece of them."""
    if rows.height <= SAMPLE:
        return True
    piece = rows.slice(rows.height // 2, SAMPLE)
    return reducer.reduced(piece).height <= WORTH * piece.height


def _spread(rows: Chunk, delivery: Delivery, partition: int) -> list[tuple[int, Chunk]]:
    if not rows.height:
        return []
    if delivery.key is None:
        return [(partition % len(delivery.ids), rows)]
    return spread(rows, delivery.key, len(delivery.ids))


def to_all(
    port: int, kind: Kind, delivery: Delivery, sender: int, at: int, body: bytes
) -> Iterator[Message]:
    """The same to every bucket of a stage."""
    for bucket in delivery.ids:
        yield Message(delivery.stage, bucket, port, kind, sender, at, body)


def send(
    route: Route, elements: Sequence[Element], sender: int, last: int, at: int
) -> Iterator[Message]:
    """What left an operator, to the stage that reads it or to the result."""
    chunks = [each for each in elements if isinstance(each, pl.DataFrame)]
    final = route.stage == last
    if chunks:
        rows = pl.concat(chunks) if len(chunks) > 1 else chunks[0]
        kind = Kind.RESULT if final else Kind.ROWS
        for number, part in spread(rows, route.key or (), len(route.ids)):
            body = packed(part)
            yield Message(route.stage, route.ids[number], route.producer, kind, sender, at, body)
    promises = [each for each in elements if not isinstance(each, pl.DataFrame)]
    if promises and not final:
        body = pickled(promises)
        for bucket in route.ids:
            yield Message(route.stage, bucket, route.producer, Kind.ELEMENTS, sender, at, body)
