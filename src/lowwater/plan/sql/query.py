"""This module plans a SELECT as logical nodes, step by step.

FROM and WHERE give a node and the names that can be used over it (``joins``); then come the window
and the aggregates (``windows``, ``aggregates``) or the select list (``select_list``), DISTINCT and
ORDER BY. The builders of the fluent API build the nodes, from trees; errors point at the place in
the query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from lowwater.joins.ordered.strategy import ORDERS, Ordering
from lowwater.plan.builders import joins as join_builders
from lowwater.plan.builders import rows as row_builders
from lowwater.plan.builders import unions as union_builders
from lowwater.plan.nodes import Node
from lowwater.plan.sql import dialect
from lowwater.plan.sql.aggregates import Grouping
from lowwater.plan.sql.bands import conjuncts
from lowwater.plan.sql.joins import Joins
from lowwater.plan.sql.parser import one_query
from lowwater.plan.sql.refusals import refuse_unread
from lowwater.plan.sql.scope import Scope, found
from lowwater.plan.sql.select_list import Item, has_aggregate, project, refuse_item
from lowwater.plan.sql.sources import Sources
from lowwater.plan.sql.values import Values, parameter
from lowwater.plan.sql.windows import Clause, item_clause, over_results, read_clause
from lowwater.plan.text_places import at, wrong


def plan_query(text: str, streams: Mapping[str, Node], values: Values, origin: str) -> Node:
    """Return the node of a query text over named streams."""
    return Queries(text, values, origin).query(one_query(text), streams)


class Queries:
    """Plans the queries of one text."""

    def __init__(self, text: str, values: Values, origin: str):
        self._text, self._values, self._origin = text, values, origin

    def query(self, tree: exp.Expr, known: Mapping[str, Node]) -> Node:
        """Return the node of a query over streams and views by name."""
        try:
            return self._query(tree, known)
        except RecursionError:
            raise wrong("this query is nested too deeply to be planned", self._text) from None

    def _query(self, tree: exp.Expr, known: Mapping[str, Node]) -> Node:
        """Return the node of a SELECT or of a union of queries, with or without WITH in front."""
        refuse_unread(tree, self._text)
        known = self._with(tree, known)
        if isinstance(tree, exp.Subquery):
            return self._order(tree).of_rows(self.query(tree.this, known))
        if isinstance(tree, exp.Union):
            return self._union(tree, known)
        if isinstance(tree, exp.Select):
            return self._select(tree, known)
        if isinstance(tree, dialect.CreateStream | dialect.InsertInto | exp.Create | exp.Insert):
            raise wrong(
                "CREATE and INSERT go into a pipeline file, for the command lowwater run",
                self._text,
                tree,
            )
        if isinstance(tree, exp.SetOperation):
            raise wrong("queries are put together by UNION only", self._text, tree)
        raise wrong("this is no query: it begins with SELECT or WITH", self._text, tree)

    def _with(self, tree: exp.Expr, known: Mapping[str, Node]) -> Mapping[str, Node]:
        clause = tree.args.get("with_")
        if clause is None:
            return known
        if clause.args.get("recursive"):
            raise wrong("a stream's query cannot be recursive", self._text, clause)
        refuse_unread(clause, self._text)
        extended = dict(known)
        for each in clause.expressions:
            refuse_unread(each, self._text)
            extended[each.alias] = self.query(each.this, extended)
        return extended

    def _union(self, tree: exp.Union, known: Mapping[str, Node]) -> Node:
        first, second = (self.query(each, known) for each in (tree.this, tree.expression))
        with at(self._text, tree):
            node = union_builders.united([first, self._alike(second, first)], self._origin)
            if tree.args.get("distinct") and node.updates is None:  # else no row comes twice
                node = row_builders.deduplicated(node, (), self._origin)
        return self._order(tree).of_rows(node)

    def _order(self, tree: exp.Expr) -> OrderBy:
        return OrderBy(tree, self._text, self._values, self._origin)

    def _alike(self, node: Node, other: Node) -> Node:
        """Return a node with its columns renamed, place by place, to those of another."""
        names = list(node.schema)
        if names == list(other.schema) or len(names) != len(other.schema):
            return node
        return row_builders.renamed(node, dict(zip(other.schema, names, strict=True)), self._origin)

    # ---- SELECT ----------------------------------------------------------------------------

    def _select(self, tree: exp.Select, known: Mapping[str, Node]) -> Node:
        self._refuse(tree)
        scope, clause = self._rows(tree, known)
        items = [Item.of(each) for each in tree.expressions]
        for item in items:
            refuse_item(item.tree, self._text)
        own = item_clause(items, self._values, self._text)
        joined = bool(tree.args.get("joins"))  # a trailing window is that of the join, then
        if own is not None and clause is not None and not joined:
            raise wrong("the window is given twice", self._text, own.tree)
        grouped = any(tree.args.get(part) is not None for part in ("group", "having"))
        grouped = grouped or any(has_aggregate(item.tree) for item in items)
        order = self._order(tree)
        if grouped or own is not None or (clause is not None and not joined):
            if clause is not None and joined and own is None:
                clause = over_results(scope, clause, self._origin)
            node = Grouping(self._text, self._origin).aggregate(tree, scope, own or clause, items)
        else:
            order.of_results(scope, items)
            node = project(scope, items, self._origin)
        if tree.args.get("distinct"):
            with at(self._text, tree.args["distinct"], tree):
                node = row_builders.deduplicated(node, (), self._origin)
        return order.of_rows(node)

    def _refuse(self, tree: exp.Select) -> None:
        if tree.args.get("from_") is None:
            raise wrong(
                "FROM is missing: a continuous query reads at least one stream", self._text, tree
            )
        if not tree.expressions:
            raise wrong("SELECT lists nothing; use * for all columns", self._text, tree)
        distinct = tree.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            raise wrong(
                "DISTINCT ON is not part of the language; use first(...) in an aggregate",
                self._text,
                distinct,
            )

    def _rows(self, tree: exp.Select, known: Mapping[str, Node]) -> tuple[Scope, Clause | None]:
        """Return the scope of FROM and WHERE, and the window over it; None without a window."""
        sources = Sources(self._text, known, self._values, self.query, self._origin)
        first = sources.relation(tree.args["from_"].this)
        trailing = tree.args.get("trailing_window")
        clause = read_clause(trailing, self._values, self._text) if trailing is not None else None
        where = conjuncts(tree.args["where"].this if tree.args.get("where") else None)
        joined = [(sources.relation(each.this), each) for each in tree.args.get("joins") or ()]
        joins = Joins(self._text, self._values, sources, self._origin)
        scope = joins.rows(first, joined, where, clause, tree.args.get("join_options"))
        if not joined:
            if clause is not None and first.clause is not None:
                raise wrong("the window is given twice", self._text, clause.tree)
            clause = clause or first.clause
        return scope, clause


class OrderBy:
    """ORDER BY: over a join, the time of its results; else one progressing column.

    The time of a join's result is the greatest of its rows'. A query writes it as ``GREATEST(a.ts,
    b.ts)``, by the name it gives such a column, or as ``ts`` where every source's time is called so
    and no column of the result is. The join then puts its results in order itself, as USING
    demands. Any other column is sorted by.
    """

    def __init__(self, tree: exp.Expr, text: str, values: Values, origin: str):
        self._order = tree.args.get("order")
        self._text, self._values, self._origin = text, values, origin
        self._done = False

    @property
    def _key(self) -> exp.Expr:
        """The tree of the order; more than one, or a descending one, is refused."""
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
        """Make the join put its results in order, if ORDER BY is by the time of its results."""
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
        """Return the columns of a join whose greatest value is the order; empty if it is another
        order."""
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
        """Return the rows sorted by a column, unless a join has put them in order."""
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
