"""Rows and promises become messages to the buckets of a stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from lowwater.engines.spark.wire.buckets import spread
from lowwater.engines.spark.wire.message import Kind, Message, packed, pickled
from lowwater.engines.spark.wire.program import Delivery, Route, idle_kernel, reducer_kernel
from lowwater.engines.step import Where, call, step
from lowwater.operators.kernel import Reducer
from lowwater.stream.element import Chunk, Element, GroupPunctuation

SAMPLE = 16_384
"""Number of rows that are reduced on trial."""
WORTH = 0.5
"""Rows are reduced before they are sent if that leaves at most this share of them."""


def deliver_raw(
    port: int, rows: Chunk, delivery: Delivery, partition: int, at: int
) -> Iterator[Message]:
    """Yield messages with rows that will be judged where they arrive."""
    for number, part in _spread(rows, delivery, partition):
        body = packed(part)
        yield Message(delivery.stage, delivery.ids[number], port, Kind.RAW, partition, at, body)


def deliver(
    rows: Chunk, delivery: Delivery, partition: int, at: int, tried: dict[int, bool]
) -> Iterator[Message]:
    """Yield messages with rows that were let in, after the row-wise operators, and reduced for the
    aggregate that reads them if that leaves few enough.

    ``tried`` maps an operator's index to True if it does; this function adds to it.
    """
    prefix = [(idle_kernel(part), part) for part in delivery.prefix]
    reducer = reducer_kernel(delivery.reducer) if delivery.reducer else None
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
                tried[target] = _reducing_pays(reducer, delivery.reducer.where, part)
            if tried[target]:
                port, kind = target, Kind.PARTIALS
                part = call(delivery.reducer.where, reducer.reduced, part)
        yield Message(delivery.stage, bucket, port, kind, partition, at, packed(part))


def _reducing_pays(reducer: Reducer, where: Where, rows: Chunk) -> bool:
    """Return whether reducing rows leaves few enough of them, estimated from a sample."""
    if rows.height <= SAMPLE:
        return True
    piece = rows.slice(rows.height // 2, SAMPLE)
    return call(where, reducer.reduced, piece).height <= WORTH * piece.height


def _spread(rows: Chunk, delivery: Delivery, partition: int) -> list[tuple[int, Chunk]]:
    if not rows.height:
        return []
    if delivery.key is None:
        return [(partition % len(delivery.ids), rows)]
    return spread(rows, delivery.key, len(delivery.ids))


def deliver_promises(
    port: int, elements: Sequence[Element], delivery: Delivery, at: int
) -> Iterator[Message]:
    """Yield messages with promises of a source to every bucket of a stage; with those of a group
    to its bucket alone, if it has one."""
    shares: list[list[Element]] = [[] for _ in delivery.ids]
    for element in elements:
        if delivery.owned and isinstance(element, GroupPunctuation):
            for number, marks in spread(element.marks, delivery.key or (), len(delivery.ids)):
                part = GroupPunctuation(element.attribute, marks, element.before)
                shares[number].append(part)
        else:
            for share in shares:
                share.append(element)
    for bucket, share in zip(delivery.ids, shares, strict=True):
        yield Message(delivery.stage, bucket, port, Kind.ELEMENTS, -1, at, pickled(share))


def deliver_digest(
    port: int, found: Chunk | None, rows: int, delivery: Delivery, at: int
) -> Iterator[Message]:
    """Yield messages with the digest of ``rows`` rows to every bucket of a stage; with that of a
    group to its bucket alone, if it has one."""
    whole = {0: found} if found is not None else {}
    if delivery.owned and found is not None:
        whole = dict(spread(found, delivery.key or (), len(delivery.ids)))
    packs = {number: packed(part) for number, part in whole.items()}
    for number, bucket in enumerate(delivery.ids):
        body = pickled((rows, packs.get(number if delivery.owned else 0, b"")))
        yield Message(delivery.stage, bucket, port, Kind.DIGEST, -1, at, body)


def send(
    route: Route, elements: Sequence[Element], sender: int, last: int, at: int
) -> Iterator[Message]:
    """Yield messages with the elements of an operator, to the stage that reads it or the result."""
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
