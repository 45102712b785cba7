"""This module plans aggregate queries: GROUP BY, aggregates of the select list, and HAVING."""

from __future__ import annotations

from itertools import chain, count

from sqlglot import exp

from lowwater.errors import unknown_name
from lowwater.operators.aggregates import BUILT_IN
from lowwater.operators.window_aggregate import END
from lowwater.operators.window_state import START
from lowwater.plan.builders import aggregates as aggregate_builders
from lowwater.plan.builders import rows as row_builders
from lowwater.plan.builders.aggregates import GROUPS
from lowwater.plan.expressions import Formula, aggregate_name, column_tree, is_aggregate
from lowwater.plan.language.functions import BY_NAME, unknown_function
from lowwater.plan.nodes import Node
from lowwater.plan.sql.refusals import REASONS, refuse_unread
from lowwater.plan.sql.scope import Scope
from lowwater.plan.sql.select_list import Item, has_aggregate, listed, short_name
from lowwater.plan.sql.windows import Clause, keys_of, window
from lowwater.plan.text_places import at, wrong


class Grouping:
    """Builds the nodes of the aggregates of one SELECT over its rows."""

    def __init__(self, text: str, origin: str):
        self._text, self._origin = text, origin

    def aggregate(
        self, tree: exp.Select, scope: Scope, clause: Clause | None, items: list[Item]
    ) -> Node:
        """Return the node of a SELECT that aggregates: the columns of its select list, for the
        groups that HAVING keeps."""
        groups = self._groups(tree, scope, clause, items)
        answer = Answers(scope.with_names(*((START, END) if clause else ())), groups)
        trees = [answer.read(item) for item in items if not isinstance(item.tree, exp.Star)]
        if len(trees) < len(items):
            raise wrong(
                "an aggregate query lists its columns; * cannot stand for them",
                self._text,
                *(item.tree for item in items if isinstance(item.tree, exp.Star)),
                tree,
            )
        having = tree.args["having"].this if tree.args.get("having") else None
        if having is not None:
            having = having.transform(lambda each: self._aliased(each, scope, items))
        condition = answer.read(Item(having, None)) if having is not None else None
        if not answer.calls:
            for item in items:
                _refuse_unknown(item.tree.find(exp.Anonymous), self._text, item.tree)
            raise wrong(
                "this query has a window or groups, but aggregates nothing; add count(*), for"
                " example, or use SELECT DISTINCT",
                self._text,
                clause.tree if clause else None,
                tree,
            )
        scope.node = answer.node
        node = self._grouped(tree, scope, clause, answer)
        if condition is not None:
            formula = Formula.of(condition, self._text, having)
            with at(self._text, having, tree):
                node = row_builders.filtered(node, formula, self._origin)
        named = {tree.name for tree in trees if isinstance(tree, exp.Column)}
        first = () if clause is None or named & {START, END} else (START, END)
        return listed(node, list(zip(items, trees, strict=True)), first, self._text, self._origin)

    def _groups(
        self, tree: exp.Select, scope: Scope, clause: Clause | None, items: list[Item]
    ) -> list[tuple[str, exp.Expr]]:
        """Return the group columns, each with the resolved tree that it stands for."""
        group = tree.args.get("group")
        if group is None:
            return list(keys_of(scope, clause).items()) if clause is not None else []
        refuse_unread(group, self._text)
        if not group.expressions:
            raise wrong("GROUP BY lists nothing", self._text, group, tree)
        for each in group.expressions:
            if isinstance(each, exp.Rollup | exp.Cube | exp.GroupingSets):
                raise wrong(REASONS["rollup"], self._text, each)
        found: list[tuple[str, exp.Expr]] = []
        for each in group.expressions:
            meant = self._meant(each, scope, items)
            edge = isinstance(meant, exp.Column) and meant.name in (START, END)
            if clause is not None and edge:
                continue
            resolved = scope.resolved(meant)
            if has_aggregate(resolved):
                raise wrong("a group cannot be an aggregate", self._text, each)
            if isinstance(resolved, exp.Column):
                name = resolved.name
            else:
                name = self._group_name(meant, scope, items)
                computed = {name: Formula.of(resolved, self._text, each)}
                with at(self._text, each):
                    scope.node = row_builders.projected(
                        scope.node, (), computed, keep=True, origin=self._origin
                    )
            if name not in [known for known, _ in found]:
                found.append((name, resolved))
        return found

    def _group_name(self, tree: exp.Expr, scope: Scope, items: list[Item]) -> str:
        """Return the name of a computed group: the one in the select list, unless a column has this
        name."""
        given = [item.name for item in items if item.name and item.tree == tree]
        numbered = (f"group{number}" for number in count(1))
        return next(name for name in chain(given, numbered) if name not in scope.node.schema)

    def _meant(self, tree: exp.Expr, scope: Scope, items: list[Item]) -> exp.Expr:
        """Return the tree of a group; a number stands for the select item at that place, an alias
        for the item of that name."""
        if isinstance(tree, exp.Literal) and tree.is_int:
            at = int(tree.this)
            if not 1 <= at <= len(items):
                raise wrong(
                    f"GROUP BY {at}: the select list has {len(items)} items", self._text, tree
                )
            return items[at - 1].tree
        return self._aliased(tree, scope, items)

    def _aliased(self, tree: exp.Expr, scope: Scope, items: list[Item]) -> exp.Expr:
        """Return the select item that a name is the alias of; columns of sources come first."""
        if isinstance(tree, exp.Column) and not tree.table and not scope.knows(tree.name):
            for item in items:
                if item.name and item.name.lower() == tree.name.lower():
                    return item.tree.copy()
        return tree

    def _grouped(
        self, tree: exp.Select, scope: Scope, clause: Clause | None, answer: Answers
    ) -> Node:
        groups = [name for name, _ in answer.groups]
        group = tree.args.get("group")
        if clause is None:
            with at(self._text, group, tree):
                return aggregate_builders.group_aggregated(
                    scope.node, groups, answer.calls, self._origin
                )
        with at(self._text, clause.tree, tree, clauses={GROUPS.clause: group or tree}):
            over = window(scope, clause)
            return aggregate_builders.window_aggregated(
                scope.node, over, groups, answer.calls, self._origin
            )


class Answers:
    """Splits the select items of an aggregate query into groups, calls of aggregates, and trees
    that are computed from both."""

    def __init__(self, scope: Scope, groups: list[tuple[str, exp.Expr]]):
        self._scope, self.groups = scope, groups
        self.calls: dict[str, Formula] = {}
        self._known: list[tuple[exp.Expr, str]] = []

    @property
    def node(self) -> Node:
        """The rows, with the columns that were computed for the aggregates."""
        return self._scope.node

    def read(self, item: Item) -> exp.Expr:
        """Return an item as a tree over the columns of the aggregate's answers."""
        tree = item.tree
        resolved = self._scope.resolved(tree)
        own = item.name or short_name(tree, self._scope.text)

        def replaced(node: exp.Expr) -> exp.Expr:
            for name, group in self.groups:
                if node == group:
                    return column_tree(name)
            if is_aggregate(node):
                short = own if node is resolved else short_name(node, self._scope.text)
                return column_tree(self._call(node, short, tree))
            return node

        result = resolved.transform(replaced, copy=False)
        self._check(result, tree)
        return result

    def _call(self, node: exp.Expr, short: str, item: exp.Expr) -> str:
        """Return the column of an aggregate's answers; calls that are the same share one."""
        for known, name in self._known:
            if known == node:
                return name
        self._check_call(node, item)
        taken = {START, END, *(name for name, _ in self.groups), *self.calls}
        numbered = (f"{short}_{number}" for number in count(2))
        name = next(each for each in chain([short], numbered) if each not in taken)
        self._known.append((node.copy(), name))
        self.calls[name] = Formula.of(node.copy(), self._scope.text, item)
        return name

    def _check_call(self, node: exp.Expr, item: exp.Expr) -> None:
        text = self._scope.text
        call = node.this if isinstance(node, exp.Filter) else node
        if aggregate_name(call) is None:
            raise wrong(
                unknown_name("aggregate", short_name(call, text), BUILT_IN), text, call, item
            )

    def _check(self, tree: exp.Expr, item: exp.Expr) -> None:
        fine = {START, END, *(name for name, _ in self.groups), *self.calls}
        for column in tree.find_all(exp.Column):
            if column.name in fine:
                continue
            text = self._scope.text
            _refuse_unknown(column.find_ancestor(exp.Anonymous), text, item)
            said = f"{column.name!r} is neither in GROUP BY nor inside an aggregate"
            raise wrong(said, text, column, item)


def _refuse_unknown(call: exp.Anonymous | None, text: str, item: exp.Expr) -> None:
    """Refuse a call of an unknown function; it may be a mistyped aggregate."""
    if call is not None and call.name.lower() not in BY_NAME:
        raise wrong(unknown_function(call.name), text, call, item)
