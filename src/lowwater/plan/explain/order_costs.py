"""What an ordered join is expected to take at given rates, by the analytic model.

Rates are rows a second of streams; an input that is made from several gets the sum of theirs, as
if nothing were filtered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from lowwater.errors import OptionError, unknown_name
from lowwater.joins.ordered.model import Setting, switching_cost
from lowwater.plan.nodes import AnyJoin, Node, SourceNode
from lowwater.plan.physical.operator import PhysicalPlan
from lowwater.stream.duration import SECOND, Duration, nanoseconds, spell


@dataclass(frozen=True)
class Rates:
    """How fast streams come, and how long comparing two rows takes."""

    by_stream: Mapping[str, float]
    cost: Duration | None = None

    def check(self, plan: PhysicalPlan) -> None:
        """Refuse what cannot be: streams that are not there, rates that are none."""
        names = [each.node.spec.name for each in plan.sources]  # type: ignore[attr-defined]
        for name, rate in self.by_stream.items():
            if name not in names:
                raise OptionError(unknown_name("stream", name, names))
            if not rate > 0:
                raise OptionError(f"the rate of {name!r} is rows a second above 0, not {rate!r}")
        if self.cost is not None and nanoseconds(self.cost, "cost=") <= 0:
            raise OptionError("cost= is a length of time above zero")

    def of(self, node: Node) -> float:
        """Rows a second of an input."""
        if isinstance(node, SourceNode):
            if node.spec.name not in self.by_stream:
                raise OptionError(f"the rate of stream {node.spec.name!r} is not given")
            return self.by_stream[node.spec.name]
        return sum(map(self.of, node.inputs))


def expected(node: Node, rates: Rates) -> list[str]:
    """What each strategy of an ordered join would take, in words."""
    if not isinstance(node, AnyJoin) or node.ordering is None:
        return []
    each = tuple(map(rates.of, node.inputs))
    change = switching_cost(node.ordering.alpha, node.kept_seconds, each)
    spelled = " and ".join(f"{rate:g}" for rate in each)
    if change == inf:
        return [f"expected at {spelled} rows/s: no row is kept for others, so all do the same"]
    if rates.cost is None:
        setting = Setting(change, node.kept_seconds, each)
        return [
            f"expected at {spelled} rows/s: filter-order {_seconds(setting.filter_order)} from a"
            " row's arrival to its results; sync-filter as much while comparing costs nothing,"
            f" {_seconds(setting.sync_filter)} where adaptive changes over"
            f" ({_seconds(change)} a comparison)",
        ]
    setting = Setting(nanoseconds(rates.cost) / SECOND, node.kept_seconds, each)
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


def _seconds(length: float) -> str:
    """A length of time in three digits."""
    return spell(round(float(f"{length:.3g}") * SECOND)) if length >= 1e-9 else f"{length:.3g} s"
