"""This module reads bounds on the times of a join's rows from its conditions.

A condition bounds a join if it compares a progressing attribute of one input, plus or minus a
constant, with one of the other: ``M1.ts >= M2.ts - 30``, ``abs(a.ts - b.ts) < 5``, BETWEEN. Bounds
on one pair of attributes are intersected. A condition that is nothing but such bounds is not
checked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from lowwater.joins.reach import Band, Reach, SameBucket
from lowwater.plan.nodes import Node
from lowwater.plan.sql.scope import cut
from lowwater.plan.sql.values import interval, number
from lowwater.stream.duration import SECOND
from lowwater.stream.time_domain import TimeDomain

Pair = tuple[str, str]
_OPPOSITE: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
}


@dataclass
class GapBounds:
    """Bounds of ``right - left`` in ticks, both included, and the conditions they are read from."""

    least: int | None = None
    most: int | None = None
    conditions: list[exp.Expr] = field(default_factory=list)
    """The conditions that are nothing but such bounds."""

    def add(self, least: int | None, most: int | None, condition: exp.Expr | None) -> None:
        """Tighten the bounds; None leaves an end as it is."""
        if least is not None:
            self.least = least if self.least is None else max(self.least, least)
        if most is not None:
            self.most = most if self.most is None else min(self.most, most)
        if condition is not None:
            self.conditions.append(condition)

    @property
    def closed(self) -> bool:
        """True if both ends are known."""
        return self.least is not None and self.most is not None


class Bands:
    """Collects the bounds between two inputs of a join, by pair of attributes, one of each."""

    def __init__(self, text: str, left: Node, right: Node):
        self._text, self._left, self._right = text, left, right
        self.bounds: dict[Pair, GapBounds] = {}
        self.buckets: dict[Pair, tuple[int, exp.Expr]] = {}
        self.unlike: Pair | None = None
        """Two times of unlike units that a condition compares; None if there are none."""

    def read(self, condition: exp.Expr) -> None:
        """Read the bounds in a resolved condition."""
        compared = list(_comparisons(condition))
        found = [self._between(one, two) for _, one, two in compared]
        whole = len({each[0] for each in found if each}) == 1 and all(found)
        for (kind, _, _), each in zip(compared, found, strict=True):
            if each is None:
                continue
            pair, gap, turned = each
            least, most = _limits(_OPPOSITE[kind] if turned else kind, gap)
            bounds = self.bounds.setdefault(pair, GapBounds())
            bounds.add(least, most, condition if whole else None)
        if isinstance(condition, exp.EQ) and not any(found):
            self._bucket(condition)

    def _between(self, one: exp.Expr, two: exp.Expr) -> tuple[Pair, Fraction, bool] | None:
        """Return the pair of attributes and the gap in ticks by which ``one - two`` equals
        ``right - left - gap``, and True if it equals the opposite of that."""
        ahead, behind = self._linear(one), self._linear(two)
        if ahead is None or behind is None:
            return None
        (plus, minus), constant = _difference(ahead, behind)
        if len(plus) != 1 or len(minus) != 1:
            return None
        first, second = plus.pop(), minus.pop()
        for pair, turned in (((second, first), False), ((first, second), True)):
            if pair[0] in self._left.progress and pair[1] in self._right.progress:
                rate = self._rate(pair)
                if rate is None:
                    self.unlike = pair
                    return None
                ticks = constant * rate / SECOND
                return pair, ticks if turned else -ticks, turned
        return None

    def _rate(self, pair: Pair) -> int | None:
        one, two = (
            node.progress[name].domain
            for node, name in zip((self._left, self._right), pair, strict=True)
        )
        return one.ticks_per_second or 1 if one == two else None  # buckets are counted one by one

    def _linear(self, tree: exp.Expr) -> tuple[list[str], list[str], Fraction] | None:
        """Return a sum as the columns added, the columns subtracted and a constant in
        nanoseconds."""
        if isinstance(tree, exp.Paren):
            return self._linear(tree.this)
        if isinstance(tree, exp.Column):
            return [tree.name], [], Fraction(0)
        if isinstance(tree, exp.Neg):
            inner = self._linear(tree.this)
            return None if inner is None else (inner[1], inner[0], -inner[2])
        constant = interval(tree)
        if constant is None and (bare := number(tree)) is not None:
            constant = bare * SECOND
        if constant is not None:
            return [], [], constant
        if isinstance(tree, exp.Add | exp.Sub):
            one, two = self._linear(tree.this), self._linear(tree.expression)
            if one is None or two is None:
                return None
            if isinstance(tree, exp.Sub):
                two = two[1], two[0], -two[2]
            return one[0] + two[0], one[1] + two[1], one[2] + two[2]
        return None

    def _bucket(self, condition: exp.EQ) -> None:
        """Read a condition that puts both times into one bucket: ``a.ts / 10 = b.ts / 10``."""
        sides = [
            cut(each, self._domain, self._text) for each in (condition.this, condition.expression)
        ]
        if sides[0] is None or sides[1] is None or sides[0][1:] != sides[1][1:]:
            return
        one, two = sides[0][0], sides[1][0]
        for pair in ((one, two), (two, one)):
            if pair[0] in self._left.progress and pair[1] in self._right.progress:
                self.buckets[pair] = (sides[0][1], condition)

    def _domain(self, name: str) -> TimeDomain | None:
        both = {**self._left.progress, **self._right.progress}
        return both[name].domain if name in both and not both[name].domain.counts_rows else None

    def choose(self) -> tuple[Pair, Reach, list[exp.Expr]] | None:
        """Return a pair of attributes that bounds the join, its reach, and the conditions that need
        no further check; None if nothing bounds the join."""
        for pair, bounds in self.bounds.items():
            if bounds.closed:
                assert bounds.least is not None
                assert bounds.most is not None
                return pair, Band(-bounds.least, bounds.most), bounds.conditions
        for pair, (width, condition) in self.buckets.items():
            return pair, SameBucket(width), [condition]
        return None


def _comparisons(tree: exp.Expr) -> Iterator[tuple[type[exp.Expr], exp.Expr, exp.Expr]]:
    """Yield the comparisons that a condition consists of, each as its kind and its two sides."""
    if isinstance(tree, exp.Paren):
        yield from _comparisons(tree.this)
    elif isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        yield exp.GTE, tree.this, tree.args["low"]
        yield exp.LTE, tree.this, tree.args["high"]
    elif type(tree) in _OPPOSITE:
        for kind, one, two in (
            (type(tree), tree.this, tree.expression),
            (_OPPOSITE[type(tree)], tree.expression, tree.this),
        ):
            inner = one.this.unnest() if isinstance(one, exp.Abs) else None
            if isinstance(inner, exp.Sub) and kind in (exp.LT, exp.LTE):
                yield kind, inner, two
                yield kind, exp.Neg(this=inner), two
                return
        yield type(tree), tree.this, tree.expression


def _difference(
    ahead: tuple[list[str], list[str], Fraction], behind: tuple[list[str], list[str], Fraction]
) -> tuple[tuple[list[str], list[str]], Fraction]:
    plus, minus = [*ahead[0], *behind[1]], [*ahead[1], *behind[0]]
    for name in list(plus):
        if name in minus:
            plus.remove(name)
            minus.remove(name)
    return (plus, minus), ahead[2] - behind[2]


def _limits(kind: type[exp.Expr], gap: Fraction) -> tuple[int | None, int | None]:
    """Return the least and the most whole ticks that ``value kind gap`` allows; None for no
    limit."""
    if kind is exp.LTE:
        return None, floor(gap)
    if kind is exp.LT:
        return None, ceil(gap) - 1
    if kind is exp.GTE:
        return ceil(gap), None
    if kind is exp.GT:
        return floor(gap) + 1, None
    return ceil(gap), floor(gap)


def conjuncts(tree: exp.Expr | None) -> list[exp.Expr]:
    """Return the conditions that a tree puts together by AND."""
    if tree is None:
        return []
    if isinstance(tree, exp.Paren) and isinstance(tree.this, exp.And):
        return conjuncts(tree.this)
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.this), *conjuncts(tree.expression)]
    return [tree]


def together(conditions: Iterable[exp.Expr]) -> exp.Expr | None:
    """Return the conjunction of several conditions; None for none."""
    found = list(conditions)
    return exp.and_(*found, copy=False) if found else None
