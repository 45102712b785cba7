"""The papers' cost models predict the latency and the state of joins ahead of a run.

For an ordered join, they predict the time from a row's arrival to its results, at given rates. A
rate is the number of rows a second of a stream; an input made from several streams has the sum of
their rates, as if nothing were filtered.

For a join without a window, they predict the number of rows that the join keeps. This follows from
the facts that streams declare: a filter or projection lets through no more rows than it gets, and
results of joins are bounded by Theorem 3.1 of WO-Join. Where a stream declares nothing, its rows
count as having different values and no delay.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import polars as pl

from lowwater.errors import OptionError, unknown_name
from lowwater.joins.oblivious.memory_model import (
    InputTraits,
    MemoryNeeds,
    ReliefChooser,
    joined,
)
from lowwater.joins.oblivious.memory_need import JoinNeed
from lowwater.joins.oblivious.options import RELIEF_MODES, SPILLING_MODES
from lowwater.joins.oblivious.read_ahead import rows_ahead
from lowwater.joins.ordered.model import OrderCosts, switching_cost
from lowwater.plan.builders.oblivious import declared_facts, measures_equal_times, rooted
from lowwater.plan.builders.updates import sources
from lowwater.plan.nodes import AnyJoin, JoinNode, MultiJoinNode, Node, SourceNode
from lowwater.stream.duration import SECOND, Duration, nanoseconds, spell
from lowwater.stream.size import spell_bytes

TEXT = 16
"""The bytes counted for a value of variable size, such as a text or a list."""


@dataclass(frozen=True)
class Rates:
    """The rates of streams, and the cost of a comparison."""

    by_stream: Mapping[str, float]
    """Rows a second of each stream, by name."""
    cost: Duration | None = None
    """The time a comparison of two rows takes; None if it is not known."""

    def check(self, names: Sequence[str]) -> None:
        """Refuse rates of streams other than ``names``, and rates or costs not above 0."""
        for name, rate in self.by_stream.items():
            if name not in names:
                raise OptionError(unknown_name("stream", name, names))
            if not rate > 0:
                raise OptionError(f"the rate of {name!r} is rows a second above 0, not {rate!r}")
        if self.cost is not None and nanoseconds(self.cost, "cost=") <= 0:
            raise OptionError("cost= is a length of time above zero")

    def among(self, names: Collection[str]) -> Rates:
        """Return the rates of some streams only."""
        found = {name: rate for name, rate in self.by_stream.items() if name in names}
        return replace(self, by_stream=found)

    def of(self, node: Node) -> float:
        """Return the rows a second of an input."""
        names = [each.spec.name for each in sources(node)]
        for name in names:
            if name not in self.by_stream:
                raise OptionError(f"the rate of stream {name!r} is not given")
        return sum(self.by_stream[name] for name in names)


# ---- ordered joins -----------------------------------------------------------------------------


def latency_lines(node: AnyJoin, rates: Rates) -> list[str]:
    """Return the expected latency of an ordered join under each strategy, in words."""
    if node.ordering is None:
        return []
    each = tuple(map(rates.of, node.inputs))
    change = switching_cost(node.ordering.alpha, node.kept_seconds, each)
    spelled = " and ".join(f"{rate:g}" for rate in each)
    if change == inf:
        return [f"expected at {spelled} rows/s: no row is kept, so all strategies do the same"]
    if rates.cost is None:
        setting = OrderCosts(change, node.kept_seconds, each)
        return [
            f"expected at {spelled} rows/s: filter-order {_seconds(setting.filter_order)} from a"
            " row's arrival to its results; sync-filter as much while comparing costs nothing,"
            f" {_seconds(setting.sync_filter)} where adaptive changes over"
            f" (at {_seconds(change)} a comparison)",
        ]
    setting = OrderCosts(nanoseconds(rates.cost) / SECOND, node.kept_seconds, each)
    lines = [
        f"expected at {spelled} rows/s: sync-filter {_seconds(setting.sync_filter)}, filter-order"
        f" {_seconds(setting.filter_order)} from a row's arrival to its results,"
        f" {setting.gain:.0%} less",
        f"load c·|w|·λ1·λ2 = {setting.load:.3g}: adaptive takes"
        f" {'filter-order' if setting.load >= node.ordering.alpha else 'sync-filter'}"
        f" (alpha {node.ordering.alpha:g}, reached at {_seconds(change)} a comparison)",
    ]
    if not setting.keeps_up:
        lines.append("more rows come than can be joined: both fall ever further behind")
    return lines


def waiting_lines(node: AnyJoin, rates: Rates | None) -> list[str]:
    """Return the rows and results on which the buffers of an ordered join depend, and the number of
    rows that wait on average at given rates, in words."""
    names = ", ".join(input_names(node))
    pairs = isinstance(node, MultiJoinNode) or (isinstance(node, JoinNode) and node.kind.pairs)
    reach = "" if pairs else " less the reach of the join"
    lines = [
        f"waiting rows: those above the least mark of {names}; held results: those above it{reach}"
    ]
    if rates is None:
        return lines
    found = OrderCosts(0.0, node.kept_seconds, tuple(map(rates.of, node.inputs)))
    slack = [_slack(each, time) for each, time in zip(node.inputs, node.times, strict=True)]
    known = [each for each in slack if each is not None]
    behind = f", with {_seconds(max(known))} of slack" if any(known) else ""
    behind += "" if len(known) == len(slack) else ", without the slack that is not known"
    rows = found.mean_waiting + max(known, default=0.0) * sum(found.rates)
    return [*lines, f"expected: {rows:,.3g} rows above that mark on average{behind}"]


def _slack(node: Node, column: str) -> float | None:
    """Return the seconds by which the marks of an input are behind its newest row; None if its
    contract does not say."""
    root, name = rooted(node, column)
    if not isinstance(root, SourceNode) or name not in root.spec.contracts:
        return None
    domain = root.progress[name].domain
    ticks = root.spec.contracts[name].top_slack(domain)
    return None if ticks is None else ticks / max(1, domain.ticks_per_second)


def input_names(node: AnyJoin) -> tuple[str, ...]:
    """Return the names of the inputs of a join: those of their streams."""
    return tuple(_name(each, time) for each, time in zip(node.inputs, node.times, strict=True))


def _seconds(length: float) -> str:
    """Return a length of time in three digits."""
    return spell(round(float(f"{length:.3g}") * SECOND)) if length >= 1e-9 else f"{length:.3g} s"


# ---- joins without a window --------------------------------------------------------------------


def buffer_lines(node: AnyJoin, rates: Rates | None) -> list[str]:
    """Return the rule by which a join without a window keeps rows, and the number it is expected to
    keep, in words."""
    if node.oblivious is None:
        return []
    how = node.oblivious
    names = list(input_names(node))
    given = [(name, k) for name, k in zip(names, how.disorder, strict=True) if k is not None]
    by = "measured disorder"
    if given:
        by = f"disorder of {', '.join(f'{name} ({k:,} rows)' for name, k in given)}"
        by += "" if len(given) == len(names) else ", measured disorder of others"
    wait = "" if how.latency is None else f", rows wait {spell(how.latency)} at most"
    lines = [f"keeps rows by: {by} and promises", f"options: {how.describe()}{wait}"]
    if isinstance(node, MultiJoinNode) and node.kind.tracked:
        certain = "always right" if len(given) == len(names) else "right as far as partners came in"
        certain += "" if len(given) == len(names) else " time (metric 'unmatched accuracy')"
        lines.append(
            f"rows without a partner: known when the other input has passed them, {certain}"
        )
    if how.strategy in ("auto", *SPILLING_MODES):
        lines.append(f"reads ahead of rows on disk: {how.read_ahead.describe()}")
    missing: list[str] = []
    traits = _traits_of_all(node, rates, missing)
    if traits is None:
        unknown = ", ".join(dict.fromkeys(missing))
        return [*lines, f"predicted buffers: measured at run time (not known: {unknown})"]
    return [*lines, *_buffers(node, MemoryNeeds.of(traits), names)]


def _buffers(node: AnyJoin, needs: MemoryNeeds, names: list[str]) -> list[str]:
    """Return the rows of each input, and the rows and bytes of all under each strategy."""
    rows = ", ".join(f"{name} {needs.buffer(at):,} rows" for at, name in enumerate(names))
    widths = [_width(each.schema) for each in node.inputs]
    totals = []
    first = rows_ahead(0, 0.0, 0, None)  # of auto, before a page has been read
    ahead = [node.oblivious.read_ahead.fixed(width) if node.oblivious else None for width in widths]
    for mode in RELIEF_MODES:
        kept = [
            needs.kept(at, mode, first if rows is None else rows) for at, rows in enumerate(ahead)
        ]
        size = sum(each * width for each, width in zip(kept, widths, strict=True))
        totals.append(f"{mode} {sum(kept):,} rows, {spell_bytes(size)}")
    return [f"predicted buffers: {rows}", f"in memory by strategy: {'; '.join(totals)}"]


def memory_need(node: AnyJoin, rates: Rates | None) -> JoinNeed | None:
    """Return the memory that a join without a window needs, by what its streams declare; None if
    that is not enough."""
    how, traits = node.oblivious, _traits_of_all(node, rates, [])
    if how is None or traits is None:
        return None
    widths = [float(_width(each.schema)) for each in node.inputs]
    needs = MemoryNeeds.of(traits)
    ahead = [how.read_ahead.fixed(width) for width in widths]
    first = rows_ahead(0, 0.0, 0, None)
    return JoinNeed(
        needs,
        tuple(widths),
        tuple(ReliefChooser(how, limited=True).allowed(needs)),
        how.accuracy,
        max(first if rows is None else rows for rows in ahead),
        most=how.memory,
    )


def _traits_of_all(
    node: AnyJoin, rates: Rates | None, missing: list[str]
) -> list[InputTraits] | None:
    found = [
        _traits(each, time, rates, missing)
        for each, time in zip(node.inputs, node.times, strict=True)
    ]
    seconds = node.kept_seconds
    known = [
        replace(each, reach=each.rate * seconds[at])
        for at, each in enumerate(found)
        if each is not None
    ]
    return known if len(known) == len(found) else None


def _traits(node: Node, column: str, rates: Rates | None, missing: list[str]) -> InputTraits | None:
    """Return the properties of an input; None, with their names added to ``missing``, if some are
    not known."""
    root, name = rooted(node, column)
    if measures_equal_times(root):
        assert isinstance(root, AnyJoin)
        inputs = _traits_of_all(root, rates, missing)
        return None if inputs is None else joined(inputs)
    known, title = declared_facts(root, name), _name(node, column)
    rate = known.rate
    if rates is not None and isinstance(root, SourceNode):
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
    """Return the name of an input: that of its stream, or of the streams it is made from."""
    root, _ = rooted(node, column)
    if isinstance(root, SourceNode):
        return root.spec.name
    return f"({', '.join(dict.fromkeys(each.spec.name for each in sources(root)))})"


def _width(schema: Mapping[str, pl.DataType]) -> int:
    """Return the estimated size of a row, in bytes."""
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
