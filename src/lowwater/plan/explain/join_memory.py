"""How many rows a join without a window is expected to keep, by the model, ahead of a run.

What is said of streams is followed to the join: what a filter or a projection lets through is no
more than it is given, results of joins are bounded by Theorem 3.1 of WO-Join. Where nothing is said
of it, rows of a stream have values of their own and no delay.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from lowwater.joins.oblivious.memory_model import InputTraits, MemoryNeeds, joined
from lowwater.joins.oblivious.options import RELIEF_MODES
from lowwater.joins.oblivious.stored_rows import PAGE_ROWS
from lowwater.plan import nodes
from lowwater.plan.builders.oblivious import known_of, rooted
from lowwater.plan.explain.order_costs import Rates
from lowwater.plan.nodes import Node
from lowwater.stream.duration import SECOND, nanoseconds, spell
from lowwater.stream.size import spell_bytes

TEXT = 16
"""Bytes counted for a text, a list or the like: what a short text takes."""


def predicted(node: Node, rates: Rates | None) -> list[str]:
    """What a join without a window goes by, and what it is expected to keep; nothing of others."""
    if not isinstance(node, nodes.MultiJoinNode) or node.oblivious is None:
        return []
    how = node.oblivious
    names = [_name(each, time) for each, time in zip(node.inputs, node.times, strict=True)]
    given = [(name, k) for name, k in zip(names, how.disorder, strict=True) if k is not None]
    by = "measured disorder"
    if given:
        by = f"disorder of {', '.join(f'{name} ({k:,} rows)' for name, k in given)}"
        by += "" if len(given) == len(names) else ", measured disorder of others"
    wait = "" if how.latency is None else f", rows wait {spell(how.latency)} at most"
    lines = [f"keeps rows by: {by} and promises", f"options: {how.describe()}{wait}"]
    missing: list[str] = []
    traits = _traits_of_all(node, rates, missing)
    if traits is None:
        unknown = ", ".join(dict.fromkeys(missing))
        return [*lines, f"predicted buffers: measured at run time (not known: {unknown})"]
    return [*lines, *_buffers(node, MemoryNeeds.of(traits), names)]


def _buffers(node: nodes.MultiJoinNode, needs: MemoryNeeds, names: list[str]) -> list[str]:
    """Of each input, and of all in each strategy."""
    rows = ", ".join(f"{name} {needs.buffer(at):,} rows" for at, name in enumerate(names))
    widths = [_width(each.schema) for each in node.inputs]
    totals = []
    for mode in RELIEF_MODES:
        kept = [needs.kept(at, mode, PAGE_ROWS) for at in range(len(names))]
        size = sum(each * width for each, width in zip(kept, widths, strict=True))
        totals.append(f"{mode} {sum(kept):,} rows, {spell_bytes(size)}")
    return [f"predicted buffers: {rows}", f"in memory by strategy: {'; '.join(totals)}"]


def _traits_of_all(
    node: nodes.MultiJoinNode, rates: Rates | None, missing: list[str]
) -> list[InputTraits] | None:
    found = [
        _traits(each, time, rates, missing)
        for each, time in zip(node.inputs, node.times, strict=True)
    ]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def _traits(node: Node, column: str, rates: Rates | None, missing: list[str]) -> InputTraits | None:
    """What an input is like; None, and what is missing, if that is not known."""
    root, name = rooted(node, column)
    if isinstance(root, nodes.MultiJoinNode) and root.oblivious is not None:
        inputs = _traits_of_all(root, rates, missing)
        return None if inputs is None else joined(inputs)
    known, title = known_of(root, name), _name(node, column)
    rate = known.rate
    if rates is not None and isinstance(root, nodes.SourceNode):
        rate = rates.by_stream.get(root.spec.name, rate)
    if rate is None:
        missing.append(f"rate of {title}")
    if known.disorder is None:
        missing.append(f"disorder of {title}")
    if rate is None or known.disorder is None:
        return None
    delay = nanoseconds(known.delay) / SECOND if known.delay is not None else 0.0
    return InputTraits(rate, known.disorder, known.multiplicity or 1, delay)


def _name(node: Node, column: str) -> str:
    """What an input is called: by its stream, or by the streams it is made from."""
    root, _ = rooted(node, column)
    if isinstance(root, nodes.SourceNode):
        return root.spec.name
    return f"({', '.join(dict.fromkeys(_streams(root)))})"


def _streams(node: Node) -> list[str]:
    if isinstance(node, nodes.SourceNode):
        return [node.spec.name]
    return [name for each in node.inputs for name in _streams(each)]


def _width(schema: Mapping[str, pl.DataType]) -> int:
    """About how many bytes a row takes."""
    return sum(map(_bytes, schema.values()))


def _bytes(dtype: pl.DataType) -> int:
    for kind, size in _SIZES:
        if dtype in kind:
            return size
    return TEXT


_SIZES = (
    ((pl.Boolean, pl.Int8, pl.UInt8), 1),
    ((pl.Int16, pl.UInt16), 2),
    ((pl.Int32, pl.UInt32, pl.Float32, pl.Date, pl.Categorical, pl.Enum), 4),
    ((pl.Int64, pl.UInt64, pl.Float64, pl.Datetime, pl.Duration, pl.Time), 8),
)
