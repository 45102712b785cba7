"""A user's function, to an operator that holds its rows to what was promised of them."""

from __future__ import annotations

from lowwater.operators.apply import Apply, Held
from lowwater.plan import nodes
from lowwater.plan.nodes import Node
from lowwater.plan.physical.compiler import Compiler
from lowwater.plan.physical.operator import Build
from lowwater.progress.contract import Contract, Ordered, Within
from lowwater.progress.spec import LatePolicy, StreamSpec
from lowwater.stream.time_domain import UNITS


def compile_apply(plan: Compiler, node: nodes.ApplyNode, inputs: tuple[int, ...]) -> int:
    """A user's function."""
    name = getattr(node.function, "__name__", "function")
    kept = frozenset(node.progress)
    function, schema = node.function, dict(node.schema)

    def telling(awaited: frozenset[str]) -> Build:
        held = _held(node, awaited & kept)
        return lambda store, _: Apply(store, function, schema, kept, held)

    index = plan.add(
        "apply",
        name,
        node,
        inputs,
        lambda store, _: Apply(store, function, schema, kept),
        lambda demands: [{a: d for a, d in demands.items() if a in kept}],
        Apply,
    )
    plan.telling[index] = telling
    return index


def _held(node: nodes.ApplyNode, attributes: frozenset[str]) -> Held | None:
    """What the rows of a function are held to; None if nobody goes by a promise."""
    usable = frozenset(name for name in attributes if not node.progress[name].nullable)
    if not usable:
        return None
    specs = _specs(node)
    first, alone = specs[0], len(specs) == 1
    units = {rate: unit for unit, rate in UNITS.items()}
    rates = {node.progress[name].domain.ticks_per_second for name in usable}
    if len(rates & units.keys()) != 1 and any(node.schema[name].is_integer() for name in usable):
        return None
    main = node.time if node.time in usable else min(usable)
    known: dict[str, Contract] = {name: Ordered() for name in (main, *sorted(usable))}
    if alone:
        known |= {name: first.contracts[name] for name in known if name in first.contracts}
    plain = {name: each if isinstance(each, Within) else Ordered() for name, each in known.items()}
    spec = StreamSpec(
        name=first.name,
        schema=dict(node.schema),
        time=main,
        contracts=plain,
        unit=units.get(next(iter(rates)), "s"),
        late=_policy(specs),
    )
    slack = {
        name: spec.domains[name].ticks(each.bound) if isinstance(each, Within) else 0
        for name, each in known.items()
        if alone
        and isinstance(each, Ordered | Within)
        and first.stamp == "external"
        and not first.key_columns
        and _same(node.inputs[0], name)
    }
    given = first.row_schema
    shown = tuple(name for name, dtype in node.schema.items() if given.get(name, dtype) == dtype)
    return Held(spec, usable, slack, shown)


def _specs(node: Node) -> list[StreamSpec]:
    """The streams a node's rows come from."""
    if isinstance(node, nodes.SourceNode):
        return [node.spec]
    return [spec for each in node.inputs for spec in _specs(each)]


def _policy(specs: list[StreamSpec]) -> LatePolicy:
    policies = {spec.late for spec in specs}
    if "fail" in policies:
        return "fail"
    return "drop" if policies == {"drop"} else "side"


def _same(node: Node, column: str) -> bool:
    """Whether a column is the one of the source, as it came."""
    if isinstance(node, nodes.SourceNode):
        return column in node.spec.contracts
    if isinstance(node, nodes.ProjectNode) and node.copied.get(column) != column:
        return False
    rowwise = isinstance(node, nodes.FilterNode | nodes.ProjectNode)
    return rowwise and _same(node.inputs[0], column)
