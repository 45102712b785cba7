"""This module resolves select lists: their items, the columns of ``*``, and their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from lowwater.plan.builders import rows as row_builders
from lowwater.plan.expressions import Formula, column_tree, is_aggregate
from lowwater.plan.nodes import Node
from lowwater.plan.sql.scope import Scope
from lowwater.plan.text_places import at, wrong


@dataclass(frozen=True)
class Item:
    """One item of a select list."""

    tree: exp.Expr
    name: str | None
    """The name after AS; None without one."""

    @classmethod
    def of(cls, tree: exp.Expr) -> Item:
        """Return the item of a tree, with or without AS."""
        return cls(tree.this, tree.alias) if isinstance(tree, exp.Alias) else cls(tree, None)

    @property
    def is_star(self) -> bool:
        """True if it stands for several columns."""
        return isinstance(self.tree, exp.Star) or (
            isinstance(self.tree, exp.Column) and isinstance(self.tree.this, exp.Star)
        )


def refuse_item(tree: exp.Expr, text: str) -> None:
    """Refuse OVER and queries, which an item cannot contain."""
    for each in tree.walk():
        if isinstance(each, exp.Window):
            raise wrong(
                "OVER looks at other rows; put a window after the source, [RANGE 1 minute, WA"
                " ts], and an aggregate over it; for the last 10 rows of each key, [PARTITION BY"
                " key, RANGE 10 ROWS, SLIDE 1 ROW]",
                text,
                each,
            )
        if isinstance(each, exp.Query):
            raise wrong("a query stands in FROM, not in an expression", text, each, tree)


def has_aggregate(tree: exp.Expr | None) -> bool:
    """Return True if there is an aggregate in a tree."""
    return tree is not None and any(is_aggregate(node) for node in tree.walk())


def project(scope: Scope, items: Iterable[Item], origin: str) -> Node:
    """Return the rows of a scope with the columns of a select list."""
    resolved: list[tuple[Item, exp.Expr]] = []
    for item in items:
        if item.is_star:
            resolved += [(Item(item.tree, None), tree) for tree in _starred(scope, item.tree)]
        else:
            resolved.append((item, scope.resolved(item.tree)))
    return listed(scope.node, resolved, (), scope.text, origin)


def listed(
    node: Node,
    resolved: list[tuple[Item, exp.Expr]],
    first: Iterable[str],
    text: str,
    origin: str,
) -> Node:
    """Return the columns ``first`` of a node, then items, each a tree over the node's columns."""
    columns = {name: Formula.of(column_tree(name), text) for name in first}
    for (item, tree), name in zip(resolved, _names(resolved, columns, text), strict=True):
        with at(text, item.tree):
            row_builders.check_name(name)
        columns[name] = Formula.of(tree, text, item.tree)
    if [(name, each.tree) for name, each in columns.items()] == [
        (name, column_tree(name)) for name in node.schema
    ]:
        return node
    with at(text, *(item.tree for item, _ in resolved)):
        return row_builders.projected(node, (), columns, origin=origin)


def _starred(scope: Scope, tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the columns that ``*`` or ``source.*`` stands for."""
    if isinstance(tree, exp.Column):
        owner = scope.source(tree)
        relations = {owner: scope.relations[owner]}
    else:
        relations = dict(scope.relations)
    for part in ("except_", "replace", "rename", "ilike"):
        star = tree.this if isinstance(tree, exp.Column) else tree
        if star.args.get(part):
            raise wrong(
                "* takes no EXCEPT, REPLACE or RENAME here; list the columns", scope.text, tree
            )
    merged = {} if isinstance(tree, exp.Column) else scope.merged
    seen = set()
    for columns in relations.values():
        for short, own in columns.items():
            name = merged.get(short, own)  # a column of USING comes once
            if name not in seen:
                seen.add(name)
                yield column_tree(name)


def short_name(tree: exp.Expr, text: str) -> str:
    """Return the name of an item without AS: that of the column or function in it."""
    while isinstance(tree, exp.Paren | exp.Filter | exp.Cast):
        tree = tree.this
    if isinstance(tree, exp.Column):
        return tree.name
    if isinstance(tree, exp.Func) and "start" in tree.meta:
        return text[tree.meta["start"] : tree.meta["end"] + 1].lower()
    return tree.sql_name().lower() if isinstance(tree, exp.Func) else "column"


def _names(resolved: list[tuple[Item, exp.Expr]], taken: Iterable[str], text: str) -> list[str]:
    """Return a name for every item; no two are the same."""
    plain = [item.name or _short_of(item, tree, text) for item, tree in resolved]
    names: list[str] = []
    used = set(taken)
    for (item, tree), name in zip(resolved, plain, strict=True):
        choice = name
        if item.name is None and plain.count(name) > 1 and isinstance(tree, exp.Column):
            choice = tree.name.replace(".", "_")
        number = 2
        while choice in used:
            choice, number = f"{name}_{number}", number + 1
        used.add(choice)
        names.append(choice)
    return names


def _short_of(item: Item, tree: exp.Expr, text: str) -> str:
    """Return the name of an item without AS; columns lose the name of their source."""
    if item.is_star:
        return str(tree.name).rsplit(".", 1)[-1]
    return short_name(item.tree, text)
