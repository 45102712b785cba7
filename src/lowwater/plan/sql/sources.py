"""This module plans the sources in FROM: streams, views, unions, sub-queries, and windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from lowwater.errors import unknown_name
from lowwater.plan.builders import unions as union_builders
from lowwater.plan.nodes import Node
from lowwater.plan.sql import clauses, dialect
from lowwater.plan.sql.refusals import refuse_unread
from lowwater.plan.sql.scope import found
from lowwater.plan.sql.values import Values
from lowwater.plan.sql.windows import Clause, read_clause
from lowwater.plan.text_places import at, wrong


@dataclass(frozen=True)
class Relation:
    """A source of rows, under its name in the query."""

    name: str
    node: Node
    clause: Clause | None
    tree: exp.Expr


class Sources:
    """Plans the sources in FROM."""

    def __init__(
        self,
        text: str,
        known: Mapping[str, Node],
        values: Values,
        query: Callable[[exp.Expr, Mapping[str, Node]], Node],
        origin: str,
    ):
        self._text, self._known, self._values = text, known, values
        self._query, self._origin = query, origin

    def relation(self, tree: exp.Expr) -> Relation:
        """Return the relation of one item of FROM."""
        refuse_unread(tree, self._text)
        if isinstance(tree, clauses.WithWindow):
            inner = self.relation(tree.this)
            if inner.clause is not None:
                raise wrong("a source has one window clause", self._text, tree.args["clause"])
            clause = read_clause(tree.args["clause"], self._values, self._text)
            return Relation(_alias(tree) or inner.name, inner.node, clause, tree)
        if isinstance(tree, dialect.TableFunction):
            inner = self.relation(tree.this)
            clause = read_clause(tree.args["clause"], self._values, self._text)
            return Relation(_alias(tree) or inner.name, inner.node, clause, tree)
        if isinstance(tree, dialect.SourceUnion):
            return Relation(_alias(tree), self._union(tree), None, tree)
        if isinstance(tree, exp.Subquery):
            return Relation(_alias(tree), self._query(tree.this, self._known), None, tree)
        if isinstance(tree, exp.Table) and isinstance(tree.this, exp.Identifier):
            return Relation(_alias(tree) or tree.name, self.named(tree), None, tree)
        raise wrong(
            "a source is the name of a stream, a union of such, or a query in parentheses",
            self._text,
            tree,
        )

    def named(self, tree: exp.Table) -> Node:
        """Return the node of a stream or view by its name."""
        if tree.args.get("db") is not None:
            raise wrong("a stream has a simple name", self._text, tree)
        name = found(tree.name, self._known)
        if name is None:
            raise wrong(unknown_name("stream", tree.name, self._known), self._text, tree.this)
        return self._known[name]

    def _union(self, tree: dialect.SourceUnion) -> Node:
        parts = [self.relation(each) for each in tree.expressions]
        for part in parts:
            if part.clause is not None:
                raise wrong(
                    "the window clause goes after the whole union", self._text, part.clause.tree
                )
        with at(self._text, tree):
            return union_builders.united([part.node for part in parts], self._origin)


def _alias(tree: exp.Expr) -> str:
    alias = tree.args.get("alias")
    return alias.name if alias is not None else ""
