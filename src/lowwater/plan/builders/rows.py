"""Builders of row-wise, distinct and order nodes check their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from lowwater.errors import OptionError, QueryError
from lowwater.operators.rowwise import Derivation
from lowwater.plan import nodes
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.conditions import Time, floor_before, floor_of
from lowwater.plan.expressions import (
    Expression,
    Formula,
    compile_expression,
    compile_predicate,
)
from lowwater.plan.main_time import main_time, undecided
from lowwater.plan.nodes import Node, Progressing
from lowwater.stream.floor import Floor
from lowwater.stream.time_domain import BUCKETS, TimeDomain


def stamped(node: Node, latent: str | None) -> Node:
    """Return a node that has a main time; latent rows are stamped in the column ``latent``."""
    return node if latent is None or node.time is not None else nodes.StampNode.of(node, latent)


def filtered(node: Node, predicate: Formula, origin: str) -> Node:
    """Return the rows that satisfy a condition."""
    compiled = compile_predicate(predicate, node.schema)
    domains = {name: each.domain for name, each in node.progress.items()}
    return _filter(node, compiled, floor_of(compiled, domains), origin)


def forgotten(node: Node, time: Time, column: str | None, origin: str) -> Node:
    """Return the rows that are not before a time."""
    ((name, ticks),) = floor_before(node, time, column, "forget_before").items()
    domain = node.progress[name].domain
    kept = Expression(
        f"{name} >= {domain.show(ticks)}", domain.to_ticks(pl.col(name)) >= ticks, pl.Boolean()
    )
    return _filter(node, kept, {name: ticks}, origin)


def _filter(node: Node, predicate: Expression, floor: Floor, origin: str) -> Node:
    return nodes.FilterNode(
        (node,), node.schema, node.progress, node.time, predicate, floor=floor, origin=origin
    )


def projected(
    node: Node,
    columns: Sequence[str] = (),
    computed: Mapping[str, Formula | Expression] | None = None,
    *,
    keep: bool = False,
    origin: str,
) -> Node:
    """Return the named columns unchanged and the computed ones; ``keep`` keeps all others too."""
    items = {name: Expression.of_column(name, node.schema[name]) for name in node.schema if keep}
    for name in columns:
        items[name] = Expression.of_column(name, node.need(name))
    for name, each in (computed or {}).items():
        check_name(name)
        compiled = compile_expression(each, node.schema) if isinstance(each, Formula) else each
        items[name] = _as_itself(name, compiled)
    if not items:
        raise OptionError("select needs at least one column")
    copied = {item.column: name for name, item in items.items() if item.column}
    copied |= {name: name for name, item in items.items() if item.column == name}
    update_builders.refuse_lost_key(node, copied, "select {} as it is; it may get another name")
    domains = {name: attribute.domain for name, attribute in node.progress.items()}
    found = {name: item.derivation(domains) for name, item in items.items()}
    derived = {
        name: _with_nulls(node, each)
        for name, each in found.items()
        if each is not None and _one_domain(each, domains)
    }
    progress = {
        name: Progressing(
            _domain(each, domains, items[name].dtype), *_nullable(node, name, each, derived)
        )
        for name, each in derived.items()
    }
    progress = _related(node, progress, derived)
    time = _main_time(node, progress, derived)
    schema = {name: item.dtype for name, item in items.items()}
    shown = tuple(items.items())
    return nodes.ProjectNode((node,), schema, progress, time, shown, derived, copied, origin=origin)


def renamed(node: Node, names: Mapping[str, str], origin: str) -> Node:
    """Return a node with renamed columns; ``names`` maps new names to old ones."""
    columns = {
        new: Expression.of_column(old, node.schema[old], _quoted(old)) for new, old in names.items()
    }
    return projected(node, (), columns, origin=origin)


def check_name(name: str) -> None:
    """Refuse names of computed columns that are reserved."""
    if name.startswith("__"):
        raise OptionError(f"column names that start with two underscores are reserved: {name!r}")


def _as_itself(name: str, item: Expression) -> Expression:
    """Return an expression; a column that keeps its name is shown without quotes."""
    return replace(item, text=name) if item.text == _quoted(name) else item


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def bucketed(node: Node, name: str, column: str, width: int, numbered: bool) -> Node:
    """Return a node with one more column: a time cut to ``width`` ticks, or the number of its
    bucket."""
    domain = TimeDomain.of(node.schema[column])
    attribute = node.progress.get(column)
    domain = attribute.domain if attribute else domain
    number = domain.to_ticks(pl.col(column)) // width
    shape = BUCKETS if numbered else domain
    value = number if numbered else domain.from_ticks(number * width)
    text = f"{column} / {domain.spell(width)}" if numbered else f"{column} by {domain.spell(width)}"
    derivation = Derivation(((column, 0),), bucket=width, numbered=numbered)
    return with_time(node, name, Expression(text, value, shape.dtype), derivation, shape)


def with_time(
    node: Node, name: str, item: Expression, derivation: Derivation, domain: TimeDomain
) -> Node:
    """Return a node with one more column, or one in place of another, that progresses as
    ``derivation`` states if its one source does."""
    items = {each: Expression.of_column(each, dtype) for each, dtype in node.schema.items()}
    items[name] = item
    derived = {each: _with_nulls(node, Derivation(((each, 0),))) for each in node.progress}
    progress = dict(node.progress)
    ((column, _),) = derivation.sources
    attribute = node.progress.get(column)
    if attribute is not None:
        derived[name] = replace(derivation, how=derived[column].how)
        progress[name] = Progressing(domain, attribute.nullable)
        progress = _related(node, progress, derived)
    return nodes.ProjectNode(
        (node,),
        {each: item.dtype for each, item in items.items()},
        progress,
        node.time,
        tuple(items.items()),
        derived,
        {each: each for each in node.schema if items[each].column == each},
        origin=node.origin,
    )


def _related(
    node: Node, progress: Mapping[str, Progressing], derived: Mapping[str, Derivation]
) -> dict[str, Progressing]:
    """Return the derived columns, each with the most ticks that it can be behind the others."""
    plain = (n for n, each in derived.items() if not each.numbered and each.scale == 1)
    usable = [n for n in plain if n in progress and not progress[n].nullable]
    found = dict(progress)
    for name in usable:
        lags = {other: _lag(node, derived[name], derived[other]) for other in usable}
        behind = {n: lag for n, lag in lags.items() if lag is not None and n != name}
        found[name] = replace(progress[name], behind=behind)
    return found


def _lag(node: Node, one: Derivation, two: Derivation) -> int | None:
    """Return the most ticks that a derived column can be behind another; None for no bound.

    The least of several sources is behind by the largest of their lags, the greatest of several by
    the smallest. Rounding to a bucket adds up to the bucket's width less one tick.
    """
    if any(node.progress[name].nullable for name, _ in (*one.sources, *two.sources)):
        return None
    lags = []
    for source, shift in one.sources:
        found = [(node.lag(source, other), by - shift) for other, by in two.sources]
        known = [lag + further for lag, further in found if lag is not None]
        lags.append(max(known) if len(known) == len(found) else None)
    some = [lag for lag in lags if lag is not None]
    if not some or (one.how == "least" and len(some) < len(lags)):
        return None
    return (max(some) if one.how == "least" else min(some)) + one.bucket - 1


def _main_time(
    node: Node, progress: Mapping[str, Progressing], derived: Mapping[str, Derivation]
) -> str | None:
    """Return the main time: the old one, or a column computed from it, or else any that
    progresses."""
    usable = [name for name, attribute in progress.items() if not attribute.nullable]
    if node.time in usable:
        return node.time
    if undecided(node) is not None:
        return None
    heirs = [name for name in usable if node.time in dict(derived[name].sources)]
    return next(iter([*heirs, *usable]), None)


def _domain(found: Derivation, domains: Mapping[str, TimeDomain], dtype: pl.DataType) -> TimeDomain:
    """Return the domain of a derived column, whose unit is finer if the derivation has a scale."""
    domain = domains[found.sources[0][0]]
    if found.scale == 1:
        return domain
    return TimeDomain(dtype, domain.ticks_per_second * found.scale)


def _one_domain(found: Derivation, domains: Mapping[str, TimeDomain]) -> bool:
    return len({domains[source] for source, _ in found.sources}) == 1


def _with_nulls(node: Node, found: Derivation) -> Derivation:
    """Return a derivation; if a source may be null, any source may be the greatest that is not, so
    the column progresses like the least of them."""
    if any(node.progress[source].nullable for source, _ in found.sources):
        return Derivation(found.sources, "least")
    return found


def _nullable(
    node: Node, name: str, found: Derivation, derived: Mapping[str, Derivation]
) -> tuple[bool, frozenset[str]]:
    """Return True if a derived column can be null, and the columns never null together with it.

    ``coalesce``, ``greatest`` and ``least`` are null only if all their sources are.
    """
    sources = {source for source, _ in found.sources}
    if not all(node.progress[source].nullable for source in sources):
        return False, frozenset()
    partners = [node.progress[source].partners for source in sources]
    if any(each and each <= sources for each in partners):
        return False, frozenset()
    kept = all(derived.get(p) == Derivation(((p, 0),), "least") for p in partners[0])
    return True, partners[0] if sources == {name} and kept else frozenset()


def applied(
    node: Node,
    function: Callable[[pl.DataFrame], pl.DataFrame],
    schema: Mapping[str, pl.DataType | type[pl.DataType]] | None,
    origin: str,
) -> Node:
    """Return the node of a user's function over chunks."""
    if not callable(function):
        raise OptionError(f"apply takes a function, not {type(function).__name__}")
    columns = dict(node.schema) if schema is None else dict(pl.Schema(schema))
    same = {name for name, dtype in node.schema.items() if columns.get(name) == dtype}
    update_builders.refuse_lost_key(node, same, "let the function give {} back as it is")
    kept = {n: p for n, p in node.progress.items() if columns.get(n) == node.schema[n]}
    time = node.time if node.time in kept else None
    return nodes.ApplyNode((node,), columns, kept, time, function, origin=origin)


def deduplicated(node: Node, columns: Sequence[str], origin: str) -> Node:
    """Return one row for each value of some columns (all by default), one of which must
    progress."""
    update_builders.refuse(
        [node],
        "distinct",
        "its rows replace each other already: there is one row of each key and time",
    )
    key = tuple(columns) or tuple(node.schema)
    for name in key:
        node.need(name)
    progressing = [n for n in key if n in node.progress and not node.progress[n].nullable]
    if not progressing:
        known = ", ".join(node.progress) or "none"
        raise QueryError(
            "distinct would have to remember every row for ever: none of"
            f" ({', '.join(key)}) is a progressing attribute (here: {known})"
        )
    attribute = node.time if node.time in progressing else progressing[0]
    assert attribute is not None
    if columns:
        node = projected(node, columns, origin=origin)
    return nodes.DistinctNode(
        (node,), node.schema, node.progress, node.time, key, attribute, origin=origin
    )


def ordered_by(node: Node, column: str | None, origin: str) -> Node:
    """Return the rows in order of a progressing attribute, by default the main time."""
    update_builders.refuse(
        [node],
        "order_by",
        "the rows of each key leave in order; let what reads them sort across keys",
    )
    attribute = column or main_time(node, "order_by", "order_by({})")
    domain = node.progressing(attribute, "order_by")
    progress = {attribute: Progressing(domain)}
    return nodes.OrderNode((node,), node.schema, progress, attribute, attribute, origin=origin)
