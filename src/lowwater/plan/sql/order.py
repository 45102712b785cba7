"""ORDER BY: over a join, the time of its results; else one progressing column.

The time of a join's result is the greatest of its rows'. A query says so as ``GREATEST(a.ts,
b.ts)``, by the name it gives such a column, or as ``ts`` where every source calls its time that and
no column of the result does. The join then puts its results in order itself; USING says how. Any
other column is sorted by.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from lowwater.joins.ordered.strategy import ORDERS, Ordering
from lowwater.plan.builders import joins as join_builders
from lowwater.plan.builders import rows as row_builders
from lowwater.plan.nodes import Node
from lowwater.plan.sql.scope import Scope, found
from lowwater.plan.sql.select_list import Item
from lowwater.plan.sql.values import Values, parameter
from lowwater.plan.text_places import at, wrong


class OrderBy:
    """The order a query asks for, if it does."""

    def __init__(self, tree: exp.Expr, text: str, values: Values, origin: str):
        self._order = tree.args.get("order")
        self._text, self._values, self._origin = text, values, origin
        self._done = False

    @property
    def _key(self) -> exp.Expr:
        """What is ordered by."""
        assert self._order is not None
        first, *others = self._order.expressions
        if others:
            raise wrong("a stream is ordered by one progressing attribute", self._text, others[0])
        if first.args.get("desc"):
            raise wrong(
                "a stream can be put in ascending order only: its last row never comes",
                self._text,
                first,
            )
        key: exp.Expr = first.this
        return key

    # ---- joins -----------------------------------------------------------------------------

    def of_results(self, scope: Scope, items: Sequence[Item]) -> None:
        """Let a join put its results in order, if it is their time that is asked for."""
        if self._order is None:
            return
        stamps = scope.node.stamps
        if len(stamps) < 2 or self._columns(self._key, scope, items) != set(stamps):
            return
        with at(self._text, self._key):
            node = join_builders.results_in_order(scope.node, self._ordering())
        if node is not None:
            scope.node = node
            self._done = True

    def _columns(self, key: exp.Expr, scope: Scope, items: Sequence[Item]) -> set[str]:
        """The columns of a join the greatest of which is ordered by."""
        if isinstance(key, exp.Greatest):
            parts = [key.this, *key.expressions]
            plain = all(isinstance(part, exp.Column) for part in parts)
            return {scope.column(part) or "" for part in parts} if plain else set()
        if not isinstance(key, exp.Column) or key.table:
            return set()
        for item in items:
            if item.name is not None and item.name.lower() == key.name.lower():
                return self._columns(item.tree, scope, ()) if item.tree is not key else set()
            if isinstance(item.tree, exp.Column) and item.tree.name.lower() == key.name.lower():
                return set()
        return {
            columns[name]
            for columns in scope.relations.values()
            if (name := found(key.name, columns)) is not None
        }

    def _ordering(self) -> Ordering:
        strategy = self._order.args.get("strategy") if self._order is not None else None
        if strategy is None:
            return Ordering("adaptive")
        if strategy.name not in ORDERS:
            raise wrong(
                f"ORDER BY ... USING is one of {', '.join(ORDERS).upper()}, not"
                f" {strategy.name.upper()}",
                self._text,
                strategy.this,
            )
        alpha = strategy.args.get("alpha")
        if isinstance(alpha, exp.Placeholder | exp.Parameter):
            alpha = parameter(alpha, self._values, self._text)
        if alpha is not None and not (isinstance(alpha, exp.Literal) and alpha.is_number):
            raise wrong("ALPHA is a number, at least 0 and below 1", self._text, alpha, strategy)
        with at(self._text, strategy.this):
            ordering = join_builders.ordering_of(
                strategy.name, float(alpha.name) if alpha else None
            )
        assert ordering is not None
        return ordering

    # ---- any result ------------------------------------------------------------------------

    def of_rows(self, node: Node) -> Node:
        """Rows sorted by a column, unless they are in order already."""
        if self._order is None or self._done:
            return node
        strategy = self._order.args.get("strategy")
        if strategy is not None:
            raise wrong(
                "USING says how a join puts its results in order: ORDER BY greatest(a.ts, b.ts)"
                " of the times of everything joined, in the query that joins",
                self._text,
                strategy.this,
            )
        key = self._key
        if not isinstance(key, exp.Column):
            raise wrong(
                "ORDER BY names a progressing attribute of the result, or greatest(...) of the"
                " times of everything joined",
                self._text,
                key,
            )
        name = self._result_column(key, node)
        if name not in node.progress:
            known = ", ".join(node.progress) or "none"
            raise wrong(
                f"a stream can be ordered by a progressing attribute only (here: {known}), and"
                f" {name!r} is none",
                self._text,
                key,
            )
        with at(self._text, key):
            return row_builders.ordered_by(node, name, self._origin)

    def _result_column(self, column: exp.Column, node: Node) -> str:
        choices = [column.name, f"{column.table}_{column.name}"] if column.table else [column.name]
        for choice in reversed(choices):
            alike = [name for name in node.schema if name.lower() == choice.lower()]
            if alike:
                return alike[0]
        known = ", ".join(node.schema)
        raise wrong(
            f"ORDER BY: the result has no column {column.name!r} (it has {known})",
            self._text,
            column,
        )
