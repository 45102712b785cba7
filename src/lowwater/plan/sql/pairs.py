"""This module plans a join of two inputs; conditions become keys, bands, residuals or filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from lowwater.errors import QueryError
from lowwater.joins.oblivious.options import Oblivious
from lowwater.joins.shape import KINDS, How
from lowwater.plan.builders import aggregates as aggregate_builders
from lowwater.plan.builders import rows as row_builders
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.builders.joins import Match, newest, paired, unmatched_flush
from lowwater.plan.builders.oblivious import unpromised
from lowwater.plan.expressions import Expression, Formula, column_tree, compile_expression
from lowwater.plan.nodes import Node
from lowwater.plan.sql.bands import Bands, together
from lowwater.plan.sql.scope import Scope, cut
from lowwater.plan.sql.sources import Relation
from lowwater.plan.sql.values import Values
from lowwater.plan.sql.windows import Clause, read_flush
from lowwater.plan.text_places import at, wrong
from lowwater.stream.duration import SECOND

HALVES = tuple(how for how, kind in KINDS.items() if kind.shown == (0,))
"""The joins whose results are rows of their left input alone."""


@dataclass(frozen=True)
class SourceWindow:
    """The window of a source of a join."""

    attribute: str
    seconds: Fraction
    closed: bool
    """True if its ends belong to it, as those of the window of a whole query do."""


@dataclass
class JoinSide:
    """One input of a join: its node, the sources of its columns, and its windows."""

    node: Node
    owners: frozenset[str]
    windows: tuple[SourceWindow, ...] = ()


class Pairs:
    """Plans joins of two inputs. The owner of a column is the source that it comes from."""

    def __init__(self, text: str, values: Values, origin: str):
        self.text, self._values, self.origin = text, values, origin
        self.unmatched: exp.Expr | None = None
        """The pace of rows without a partner; None if they leave at once."""
        self._owner: dict[str, str] = {}

    def own(self, columns: Iterable[str], source: str) -> None:
        """Make a source the owner of some columns."""
        self._owner |= dict.fromkeys(columns, source)

    def owners(self, condition: exp.Expr) -> frozenset[str]:
        """Return the sources whose columns a condition reads."""
        found = (self._owner.get(column.name) for column in condition.find_all(exp.Column))
        return frozenset(each for each in found if each is not None)

    def push(self, side: JoinSide, pool: list[exp.Expr]) -> list[exp.Expr]:
        """Filter an input by the conditions on it alone; return the other conditions."""
        own = [each for each in pool if self.owners(each) == side.owners]
        self.filter_side(side, *own)
        return [each for each in pool if self.owners(each) != side.owners]

    def filter_side(self, side: JoinSide, *conditions: exp.Expr) -> None:
        """Filter the rows of an input."""
        scope = self._flat(side.node)
        self.filter(scope, conditions)
        if scope.made:
            columns = tuple(side.node.schema)
            scope.node = row_builders.projected(scope.node, columns, origin=self.origin)
        side.node = scope.node

    def _flat(self, node: Node) -> Scope:
        """Return a scope for conditions whose names are resolved."""
        return Scope(self.text, self._values, node, {}, resolved_names=True)

    def filter(self, scope: Scope, conditions: Iterable[exp.Expr]) -> None:
        """Filter the rows of a scope."""
        for condition in conditions:
            formula = scope.formula(condition)
            with at(self.text, condition):
                scope.node = row_builders.filtered(scope.node, formula, self.origin)

    def side(self, relation: Relation, own: Mapping[str, str], trailing: Clause | None) -> JoinSide:
        """Return a source as an input: its columns renamed, with its own window or that of the
        query."""
        names = {new: old for old, new in own.items()}
        node = row_builders.renamed(relation.node, names, self.origin)
        side = JoinSide(node, frozenset({relation.name}))
        clause = relation.clause or trailing
        if clause is not None:
            side.windows = (self._window(relation, own, node, clause),)
        return side

    def _window(
        self, relation: Relation, own: Mapping[str, str], node: Node, clause: Clause
    ) -> SourceWindow:
        if clause.range is None or clause.range.rows is not None:
            raise wrong("the window of a join's source is a RANGE of time", self.text, clause.tree)
        if clause.slide is not None:
            raise wrong(
                "SLIDE says how often an aggregate answers; a join's source has RANGE only."
                " Put the aggregate's window after the aggregate: count(*) [RANGE 1 minute, SLIDE"
                " 1 minute, WA source.ts]",
                self.text,
                clause.tree,
            )
        if clause.closing != aggregate_builders.AT_ONCE:
            raise wrong(
                "FLUSH, KEEP and TABLE belong to the window of an aggregate, not to a join's"
                " source",
                self.text,
                clause.tree,
            )
        attribute = own[relation.node.time] if relation.node.time else None
        if clause.attribute is not None:
            scope = Scope(self.text, self._values, node, {relation.name: own})
            named = scope.named(clause.attribute)
            attribute = named.name
        if attribute is None or attribute not in node.progress:
            raise wrong(
                f"the window of {relation.name} needs a progressing attribute (here:"
                f" {', '.join(relation.node.progress) or 'none'})",
                self.text,
                clause.tree,
            )
        ticks = clause.range.nanoseconds * node.progress[attribute].domain.ticks_per_second / SECOND
        if ticks.denominator != 1 or ticks <= 0:
            raise wrong(
                "RANGE is a length above zero that the time column can count",
                self.text,
                clause.tree,
            )
        return SourceWindow(attribute, clause.range.nanoseconds / SECOND, relation.clause is None)

    def bounded(self, left: JoinSide, right: JoinSide, conditions: Iterable[exp.Expr]) -> bool:
        """Return True if conditions and windows bound how far apart in time partners are.

        Rows of update streams are bounded by their keys.
        """
        bands = Bands(self.text, left.node, right.node)
        known = [each for each in conditions if self.owners(each) <= left.owners | right.owners]
        for each in (*known, *_within(left, right)):
            bands.read(each)
        if bands.choose() is not None or not update_builders.both(left.node, right.node):
            return bands.choose() is not None
        pairs = [_columns(each, left, right) for each in known]
        return (
            update_builders.key_pairs(left.node, right.node, list(filter(None, pairs))) is not None
        )

    def join(
        self,
        left: JoinSide,
        right: JoinSide,
        conditions: list[exp.Expr],
        how: How,
        source: exp.Expr,
        after: Iterable[exp.Expr] = (),
        options: Oblivious | None = None,
    ) -> tuple[Node, list[exp.Expr]]:
        """Return the join of two inputs, and the conditions that are still to be checked after it.

        ``after`` are conditions that are checked after the join in any case. Errors point at
        ``source``.
        """
        left_over = [each for each in conditions if not self._one_sided(each, left, right, how)]
        if bool(left.windows) != bool(right.windows):
            attribute = (left.windows or right.windows)[0].attribute
            raise wrong(
                f"only {self._owner[attribute]} has a window here; both sources of a join need one",
                self.text,
                source,
            )
        left_over += _within(left, right)
        bands = Bands(self.text, left.node, right.node)
        for each in left_over:
            bands.read(each)
        chosen = bands.choose()
        if chosen is None and not update_builders.both(left.node, right.node):
            raise self._unbounded(left, right, bands, how, source, after)
        bounding = chosen[2] if chosen is not None else ()
        pairs: list[tuple[str, str]] = []
        rest: list[exp.Expr] = []
        for each in left_over:
            pair = self._equal(each, left, right)
            if pair is not None:
                pairs += [pair] if pair not in pairs else []
            elif not any(each is one for one in bounding):
                rest.append(each)
        later = [each for each in rest if self._cuts(each, [left, right])]
        if later and how != "inner":
            raise wrong(
                "buckets of times cannot be compared inside an outer join; compute them in a"
                " sub-query",
                self.text,
                later[0],
            )
        rest = [each for each in rest if not any(each is one for one in later)]
        residual = self._residual(rest, [left, right])
        if chosen is None:
            with at(self.text, source):
                update_builders.check_join(left.node, right.node, pairs, how, False)
            with at(self.text, *rest, source):
                return newest(left.node, right.node, pairs, residual, "", self.origin), later
        match = Match(tuple(pairs), chosen[0], chosen[1], residual, how, options=options)
        if self.unmatched is not None and KINDS[how].alone:
            domain = left.node.progress[chosen[0][0]].domain
            with at(self.text, self.unmatched):
                given = read_flush(self.unmatched, self._values, self.text)
                flush = unmatched_flush(given, how, domain, chosen[1], None)
            match = replace(match, flush=flush)
        with at(self.text, *rest, source):
            return paired(left.node, right.node, match, "", self.origin), later

    def _one_sided(self, condition: exp.Expr, left: JoinSide, right: JoinSide, how: How) -> bool:
        """Filter one input by a condition on it alone; return False, and do nothing, if the
        condition is on both inputs or the join keeps rows that fail it."""
        owners = self.owners(condition)
        for at_side, side in enumerate((left, right)):
            if owners and owners <= side.owners and at_side not in KINDS[how].alone:
                self.filter_side(side, condition)
                return True
        return False

    def _equal(
        self, condition: exp.Expr, left: JoinSide, right: JoinSide
    ) -> tuple[str, str] | None:
        """Return the key columns of an equality between both sides; computed ones are added to the
        inputs."""
        condition = condition.unnest()
        if not isinstance(condition, exp.EQ) or self._cuts(condition, [left, right]):
            return None
        one, two = condition.this, condition.expression
        if self.owners(one) <= right.owners and self.owners(two) <= left.owners:
            one, two = two, one
        if not self.owners(one) or not self.owners(two):
            return None
        if not (self.owners(one) <= left.owners and self.owners(two) <= right.owners):
            return None
        with at(self.text, condition):
            keys = [
                compile_expression(self._flat(side.node).formula(tree), side.node.schema)
                for side, tree in ((left, one), (right, two))
            ]
        if keys[0].dtype != keys[1].dtype or keys[0].dtype.is_nested():
            return None
        return self._key(left, keys[0]), self._key(right, keys[1])

    def _key(self, side: JoinSide, key: Expression) -> str:
        if key.column is not None:
            return key.column
        name = f"{min(side.owners)}.key{len(side.node.schema)}"
        side.node = row_builders.projected(
            side.node, (), {name: key}, keep=True, origin=self.origin
        )
        return name

    def checked(
        self, sides: Sequence[JoinSide], rest: Sequence[exp.Expr]
    ) -> tuple[Formula | None, list[exp.Expr]]:
        """Return conditions as the residual of a join of all sides, and those to be checked after
        it."""
        later = [each for each in rest if self._cuts(each, sides)]
        inside = [each for each in rest if not any(each is one for one in later)]
        return self._residual(inside, sides), later

    def _cuts(self, condition: exp.Expr, sides: Sequence[JoinSide]) -> bool:
        domain = self._flat(_all(sides)).domain
        return any(cut(node, domain, self.text) for node in condition.walk())

    def _residual(self, rest: Sequence[exp.Expr], sides: Sequence[JoinSide]) -> Formula | None:
        both = self._flat(_all(sides))
        tree = together(both.resolved(each) for each in rest)
        return Formula.of(tree, self.text, rest[0]) if tree is not None else None

    def _unbounded(
        self,
        left: JoinSide,
        right: JoinSide,
        bands: Bands,
        how: How,
        source: exp.Expr,
        after: Iterable[exp.Expr],
    ) -> QueryError:
        never = "this join could never forget a row"
        for side in (left, right):
            if not side.node.progress:
                names = ", ".join(sorted(filter(None, side.owners)))
                return wrong(f"{never}: no attribute of {names} progresses", self.text, source)
        if bands.unlike is not None:
            one, two = bands.unlike
            return wrong(
                f"{never}: {one} and {two} do not count time alike, so they cannot be compared;"
                " give both streams times of one type and unit",
                self.text,
                source,
            )
        one, two = map(_time_of, (left, right))
        why = "nothing bounds how far apart in time matching rows may be"
        if bands.bounds:
            why = "how far apart in time matching rows may be is bounded on one side only"
        if how not in ("inner", *HALVES) and self.bounded(left, right, after):
            why += " where they are joined"
            hint = "WHERE comes after an outer join: put the bounds of the times into ON"
            return wrong(f"{never}: {why}. {hint}", self.text, source)
        for side in (left, right):
            if any(unpromised(side.node, name) for name in side.node.progress):
                hint = (
                    f"Nothing is promised about times here: make them equal, {one} = {two}, or"
                    f" bound them, abs({one} - {two}) <= 60"
                )
                return wrong(f"{never}: {why}. {hint}", self.text, source)
        bound = f"Bound the times, {one} >= {two} - 60 AND {one} <= {two} + 60 for example"
        windows = ", make them equal, or give both sources a window:" + ",".join(
            f" {min(side.owners)} [RANGE 1 minute]" for side in (left, right)
        )
        hint = f"{bound}, or make them equal" if how in HALVES else bound + windows
        return wrong(f"{never}: {why}. {hint}", self.text, source)


def _columns(condition: exp.Expr, left: JoinSide, right: JoinSide) -> tuple[str, str] | None:
    """Return the columns of both sides that a condition requires to be equal; None for other
    conditions."""
    condition = condition.unnest()
    if not isinstance(condition, exp.EQ):
        return None
    one, two = condition.this.name, condition.expression.name
    one, two = (one, two) if one in left.node.schema else (two, one)
    return (one, two) if one in left.node.schema and two in right.node.schema else None


def _time_of(side: JoinSide) -> str:
    """Return a progressing attribute of an input, with the name of its source."""
    name = next(iter(side.node.progress))
    source = min(filter(None, side.owners), default="")
    return name if "." in name or not source else f"{source}.{name}"


def _within(left: JoinSide, right: JoinSide) -> Iterator[exp.Expr]:
    """Yield the conditions that windows on both inputs mean (OOP §4.2): the right row is less than
    the right window before the left row, and less than the left window after it; at most, if it is
    the window of the whole query (Ordered §1)."""
    for one in left.windows:
        for two in right.windows:
            mine, partners = column_tree(one.attribute), column_tree(two.attribute)
            after: type[exp.Binary] = exp.GTE if two.closed else exp.GT
            before: type[exp.Binary] = exp.LTE if one.closed else exp.LT
            least = exp.Sub(this=mine, expression=_bare(two.seconds))
            most = exp.Add(this=mine.copy(), expression=_bare(one.seconds))
            yield after(this=partners, expression=least)
            yield before(this=partners.copy(), expression=most)


def _bare(seconds: Fraction) -> exp.Expr:
    return exp.Literal.number(str(Decimal(seconds.numerator) / Decimal(seconds.denominator)))


def _all(sides: Sequence[JoinSide]) -> Node:
    """Return a node with the columns of all inputs."""
    schema = {name: dtype for side in sides for name, dtype in side.node.schema.items()}
    progress = {name: each for side in sides for name, each in side.node.progress.items()}
    return Node((), schema, progress, None)
