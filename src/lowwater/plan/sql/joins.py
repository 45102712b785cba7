"""This module plans FROM and WHERE as one node: one source, joins of several, and EXISTS.

Joins are planned two inputs at a time (``pairs``), from left to right. In a join, every column is
called ``source.column``, so that no names clash; the select list restores the plain names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lowwater.joins.shape import KINDS, How
from lowwater.plan.expressions import is_aggregate
from lowwater.plan.sql.bands import conjuncts
from lowwater.plan.sql.oblivious_joins import join_all, read_join_clause
from lowwater.plan.sql.pairs import HALVES, JoinSide, Pairs
from lowwater.plan.sql.refusals import refuse_unread
from lowwater.plan.sql.scope import Scope, found
from lowwater.plan.sql.sources import Relation, Sources
from lowwater.plan.sql.values import Values
from lowwater.plan.sql.windows import Clause
from lowwater.plan.text_places import at, wrong

_PLAIN = {"expressions", "from_", "where", "distinct"}
"""The parts that a query inside EXISTS may have."""


@dataclass
class _ToJoin:
    """An input that is still to be joined, and how; errors about the join point at ``source``."""

    side: JoinSide
    source: exp.Expr
    how: How
    conditions: list[exp.Expr]
    """The conditions of ON or USING."""


class Joins:
    """Plans the joins of one query."""

    def __init__(self, text: str, values: Values, sources: Sources, origin: str):
        self._text, self._values, self._sources = text, values, sources
        self._pairs = Pairs(text, values, origin)

    def rows(
        self,
        first: Relation,
        joined: Sequence[tuple[Relation, exp.Join]],
        where: list[exp.Expr],
        trailing: Clause | None,
        clause: exp.Expr | None = None,
    ) -> Scope:
        """Return the scope of the rows that FROM and WHERE give.

        ``trailing`` is the window of the whole query, ``clause`` the options of joins without a
        window; both may be None.
        """
        existing = [each for each in where if _exists(each) is not None]
        plain = [each for each in where if _exists(each) is None]
        for each in plain:
            self._refuse(each)
        self._pairs.unmatched = self._unmatched(joined, existing, clause)
        if not joined:
            if clause is not None and self._pairs.unmatched is None:
                raise wrong("this clause is of joins, and nothing is joined", self._text, clause)
            names = {first.name: {name: name for name in first.node.schema}}
            scope = Scope(self._text, self._values, first.node, names)
            self._pairs.filter(scope, plain)
        else:
            scope = self._joined(first, joined, plain, trailing, clause)
        for each in existing:
            self._half(scope, each)
        return scope

    def _unmatched(
        self,
        joined: Sequence[tuple[Relation, exp.Join]],
        existing: Sequence[exp.Expr],
        clause: exp.Expr | None,
    ) -> exp.Expr | None:
        """Return the pace of rows without a partner in the clause of joins; refuse it where no join
        emits such rows."""
        pace: exp.Expr | None = clause.args.get("unmatched") if clause is not None else None
        if pace is None:
            return None
        outer = any(KINDS[self._how(join)].alone for _, join in joined)
        if not outer and not any(isinstance(each, exp.Not) for each in existing):
            raise wrong(
                "UNMATCHED is the pace of rows without a partner; only outer and anti joins and NOT"
                " EXISTS emit such rows",
                self._text,
                pace,
                clause,
            )
        return pace

    def _refuse(self, condition: exp.Expr) -> None:
        for each in condition.walk():
            if is_aggregate(each):
                raise wrong("WHERE comes before aggregates; use HAVING", self._text, each)
            if isinstance(each, exp.Query):
                raise wrong(
                    "a query inside a condition is EXISTS (...) or NOT EXISTS (...), joined to the"
                    " others by AND",
                    self._text,
                    each,
                    condition,
                )

    # ---- many relations --------------------------------------------------------------------

    def _joined(
        self,
        first: Relation,
        joined: Sequence[tuple[Relation, exp.Join]],
        where: list[exp.Expr],
        trailing: Clause | None,
        clause: exp.Expr | None,
    ) -> Scope:
        options = read_join_clause(clause, self._values, self._text)
        relations = [first, *(relation for relation, _ in joined)]
        names = self._names(relations)
        hows = [self._how(join) for _, join in joined]
        halves = {r.name for (r, _), how in zip(joined, hows, strict=True) if how in HALVES}
        scope = Scope(self._text, self._values, first.node, names)
        after = Scope(
            self._text,
            self._values,
            first.node,
            {name: columns for name, columns in names.items() if name not in halves},
        )
        ons = [self._on(join, relation, names, scope) for relation, join in joined]
        after.merged = scope.merged
        open_ = _nullable_sources(relations, hows)
        pool = [after.named(each) for each in where]
        late = [
            each for each in pool if self._pairs.owners(each) & open_
        ]  # WHERE follows outer joins
        pool = [each for each in pool if not self._pairs.owners(each) & open_]
        left = self._pairs.side(first, names[first.name], trailing)
        pool = self._pairs.push(left, pool)
        waiting = [
            _ToJoin(
                self._pairs.side(relation, names[relation.name], trailing),
                join.this,
                how,
                [scope.named(each) for each in on],
            )
            for (relation, join), how, on in zip(joined, hows, ons, strict=True)
        ]
        if all(how == "inner" for how in hows):  # ON and WHERE mean the same
            for each in waiting:
                pool += each.conditions
                each.conditions = []
            sides = [left, *(each.side for each in waiting)]
            whole = join_all(self._pairs, sides, pool, options, first.tree)
            if whole is not None:
                after.node = whole.node
                return after
        if options is not None and len(waiting) > 1:
            raise wrong(
                "this clause is about a join of two sources, or inner joins in which a progressing"
                " attribute of each source is equal to those of all others",
                self._text,
                clause,
            )
        while waiting:
            join = waiting.pop(self._next(left, waiting, pool))
            right, how, conditions = join.side, join.how, join.conditions
            pool = self._pairs.push(right, pool)
            if how == "inner":
                seen = left.owners | right.owners
                conditions += [each for each in pool if self._pairs.owners(each) <= seen]
                pool = [each for each in pool if not self._pairs.owners(each) <= seen]
            with at(self._text, clause or join.source):
                node, rest = self._pairs.join(
                    left, right, conditions, how, join.source, late, options
                )
            windows = left.windows if how in HALVES else left.windows + right.windows
            left = JoinSide(node, left.owners | right.owners, windows)
            pool += rest
        self._pairs.filter_side(left, *pool, *late)
        after.node = left.node
        return after

    def _next(self, left: JoinSide, waiting: Sequence[_ToJoin], pool: list[exp.Expr]) -> int:
        """Return the place of the input to join next: the first whose inner join is bounded by what
        is joined so far, else the first."""
        if any(each.how != "inner" for each in waiting):
            return 0
        bounded = (self._pairs.bounded(left, each.side, pool) for each in waiting)
        return next((at for at, each in enumerate(bounded) if each), 0)

    def _names(self, relations: Sequence[Relation]) -> dict[str, dict[str, str]]:
        names: dict[str, dict[str, str]] = {}
        for each in relations:
            if not each.name:
                raise wrong(
                    "in a join every source has a name; give this one with AS",
                    self._text,
                    each.tree,
                )
            if each.name in names:
                raise wrong(
                    f"two sources are called {each.name!r}; give one another name with AS",
                    self._text,
                    each.tree,
                )
            names[each.name] = {name: f"{each.name}.{name}" for name in each.node.schema}
            self._pairs.own(names[each.name].values(), each.name)
        return names

    def _how(self, join: exp.Join) -> How:
        refuse_unread(join, self._text)
        side, kind = join.side.upper(), join.kind.upper()
        if join.args.get("method"):
            raise wrong(
                f"{join.args['method']} JOIN: say with ON what is equal, and bound the times",
                self._text,
                join,
            )
        if kind in ("SEMI", "ANTI"):
            return "semi" if kind == "SEMI" else "anti"
        if side in ("LEFT", "RIGHT", "FULL"):
            return side.lower()  # type: ignore[return-value]
        return "inner"

    def _on(
        self,
        join: exp.Join,
        relation: Relation,
        names: Mapping[str, Mapping[str, str]],
        scope: Scope,
    ) -> list[exp.Expr]:
        """Return the conditions of ON or USING."""
        conditions = conjuncts(join.args.get("on"))
        how = self._how(join)
        for each in join.args.get("using") or ():
            before = [
                (source, name)
                for source, columns in names.items()
                if (name := found(each.name, columns)) is not None
            ]
            sources = [source for source, _ in before]
            if relation.name not in sources or sources[0] == relation.name:
                raise wrong(
                    f"USING ({each.name}): both sides must have this column", self._text, each
                )
            if how == "full":
                raise wrong(
                    "FULL JOIN: use ON, and coalesce(...) of both columns", self._text, each
                )
            pair = [before[0], before[sources.index(relation.name)]]
            source, name = pair[1] if how == "right" else pair[0]
            if how not in HALVES:
                scope.merged = {**scope.merged, name: names[source][name]}
            one, two = (exp.column(name, table=source, quoted=True) for source, name in pair)
            conditions.append(exp.EQ(this=one, expression=two))
        for each in conditions:
            self._refuse(each)
        return conditions

    # ---- EXISTS ----------------------------------------------------------------------------

    def _half(self, scope: Scope, condition: exp.Expr) -> None:
        """Keep the rows that have a partner (EXISTS), or those that have none (NOT EXISTS)."""
        query = _exists(condition)
        assert query is not None
        how: How = "anti" if isinstance(condition, exp.Not) else "semi"
        used = {key for key, value in query.args.items() if value}
        if not isinstance(query, exp.Select) or used - _PLAIN or "from_" not in used:
            raise wrong(
                "EXISTS takes a plain query, SELECT ... FROM one source WHERE ...",
                self._text,
                query,
                condition,
            )
        relation = self._sources.relation(query.args["from_"].this)
        if relation.name in scope.relations or not relation.name:
            raise wrong(
                "the source inside EXISTS needs a name of its own; give one with AS",
                self._text,
                relation.tree,
            )
        inner = {name: f"{relation.name}.{name}" for name in relation.node.schema}
        self._pairs.own(inner.values(), relation.name)
        outer = {name for columns in scope.relations.values() for name in columns.values()}
        self._pairs.own(outer, "")
        both = Scope(
            self._text, self._values, scope.node, {**scope.relations, relation.name: inner}, inner
        )
        where = conjuncts(query.args["where"].this if query.args.get("where") else None)
        for each in where:
            self._refuse(each)
        conditions = [both.named(each) for each in where]
        owners = frozenset({*scope.relations, ""})
        right = self._pairs.side(relation, inner, None)
        scope.node, _ = self._pairs.join(
            JoinSide(scope.node, owners), right, conditions, how, relation.tree
        )


def _nullable_sources(relations: Sequence[Relation], hows: Sequence[How]) -> frozenset[str]:
    """Return the sources whose columns an outer join may leave null."""
    found: set[str] = set()
    for place, how in enumerate(hows, start=1):
        kind = KINDS[how]
        if 1 in kind.shown and 1 not in kind.whole:
            found.add(relations[place].name)
        if 0 not in kind.whole:
            found |= {each.name for each in relations[:place]}
    return frozenset(found)


def _exists(condition: exp.Expr) -> exp.Expr | None:
    inner = (condition.this if isinstance(condition, exp.Not) else condition).unnest()
    return inner.this if isinstance(inner, exp.Exists) else None
