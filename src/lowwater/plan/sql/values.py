"""This module reads the constants in a query: parameters, numbers and lengths of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from lowwater.errors import OptionError, Term, unknown_name
from lowwater.plan.sql.clauses import Length
from lowwater.plan.text_places import at, wrong
from lowwater.stream.duration import SECOND, nanoseconds

Values = Mapping[str, object]


@dataclass(frozen=True)
class Span:
    """A length of time in nanoseconds, or a number of rows if ``rows`` is not None."""

    nanoseconds: Fraction = Fraction(0)
    rows: int | None = None
    on_change: bool = False
    """True for ON CHANGE, which is no length."""

    @property
    def duration(self) -> str:
        """The length of time as builders take it."""
        return f"{int(self.nanoseconds)} ns"


def literal(value: object) -> exp.Expr:
    """Return the value of a parameter as a tree."""
    if value is None:
        return exp.null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int | float | Decimal):
        number = exp.Literal.number(str(abs(value)))
        return exp.Neg(this=number) if value < 0 else number
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, timedelta):
        micros = nanoseconds(value) // 1_000
        return exp.Interval(this=exp.Literal.string(str(micros)), unit=exp.var("MICROSECONDS"))
    if isinstance(value, datetime):
        return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), "TIMESTAMP")
    if isinstance(value, date):
        return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    raise OptionError(
        f"a parameter is a number, a text, a truth value, a time or a length of time,"
        f" not {type(value).__name__}"
    )


def parameter_term(name: str) -> Term:
    """Return a parameter as errors about it name it."""
    return Term(f":{name}", f":{name}")


def parameter(tree: exp.Expr, values: Values, text: str) -> exp.Expr:
    """Return the tree of the value of ``:name``."""
    name = tree.name
    if not name.isidentifier():
        raise wrong("a parameter has a name, as in :n", text, tree)
    if name not in values:
        about = parameter_term(name)
        known = [f":{each}" for each in values]
        raise wrong(unknown_name("parameter", str(about), known), text, tree, about=about)
    return given(values[name], tree, text)


def given(value: object, tree: exp.Expr, text: str) -> exp.Expr:
    """Return the tree of a parameter's value, at the place where it is used."""
    with at(text, tree):
        found = literal(value)
    for node in found.walk():
        node.meta.update(tree.meta)
    return found


def number(tree: exp.Expr | None) -> Fraction | None:
    """Return the value of a numeric constant; None for other trees."""
    if isinstance(tree, exp.Paren):
        return number(tree.this)
    if isinstance(tree, exp.Neg):
        inner = number(tree.this)
        return None if inner is None else -inner
    if isinstance(tree, exp.Literal) and not tree.is_string:
        try:
            return Fraction(Decimal(tree.this))
        except (InvalidOperation, ValueError):
            return None
    return None


def interval(tree: exp.Expr | None) -> Fraction | None:
    """Return the nanoseconds of an INTERVAL, of a text such as '5 minutes', or of a sum of such;
    None for other trees, and for lengths that are not fixed."""
    if isinstance(tree, exp.Literal) and tree.is_string:
        return _nanoseconds(tree.name)
    if isinstance(tree, exp.Add):
        one, two = interval(tree.this), interval(tree.expression)
        return None if one is None or two is None else one + two
    if not isinstance(tree, exp.Interval) or tree.this is None:
        return None
    written = tree.this.name if isinstance(tree.this, exp.Literal) else tree.this.sql()
    unit = f" {tree.unit.name}" if tree.unit is not None else ""
    return _nanoseconds(f"{written}{unit}")


def _nanoseconds(length: str) -> Fraction | None:
    try:
        return Fraction(nanoseconds(length, "interval"))
    except OptionError:
        return None


def share(tree: exp.Expr, values: Values, text: str, what: str) -> float:
    """Return the share in a clause, between 0 and 1; a percentage is divided by 100."""
    amount = tree.this
    if isinstance(amount, exp.Placeholder | exp.Parameter):
        amount = parameter(amount, values, text)
    size = number(amount)
    if size is not None and tree.args.get("percent"):
        size /= 100
    if size is None or not 0 < size < 1:
        known = "a share between 0 and 1, such as 0.999, or the same as 99.9 %"
        raise wrong(f"{what} takes {known}", text, tree)
    return float(size)


def span(tree: exp.Expr, values: Values, text: str, what: str) -> Span:
    """Return the length in a clause: of time (a bare number is seconds) or of rows."""
    found = interval(tree)
    if found is not None and found > 0:
        return Span(found)
    if not isinstance(tree, Length):
        raise wrong(f"{what} takes a length of time such as 5 minutes", text, tree)
    amount = _amount(tree, values, text)
    unit = _unit(tree)
    if isinstance(amount, exp.Interval | exp.Literal) and unit is None and number(amount) is None:
        with at(text, tree):
            return Span(interval(amount) or Fraction(nanoseconds(amount.name, what)))
    size = number(amount)
    if size is None:
        raise wrong(f"{what} takes a number and a unit, for example 5 minutes", text, tree)
    if unit is not None and unit.upper() in ("ROW", "ROWS"):
        if size.denominator != 1 or size <= 0:
            raise wrong(f"{what} takes a whole number of rows above zero", text, tree)
        return Span(rows=int(size))
    try:
        one = nanoseconds(f"1 {unit}", what) if unit else SECOND
    except OptionError:
        known = "ms, seconds, minutes, hours, days or ROWS"
        raise wrong(f"{what}: {unit!r} is no unit of time; use {known}", text, tree) from None
    if size <= 0:
        raise wrong(f"{what} is a length of time above zero", text, tree)
    return Span(size * one)


def duration(
    tree: exp.Expr, values: Values, text: str, what: str, example: str = "1 second"
) -> str:
    """Return the length of time in a clause as builders take it; a number of rows is refused."""
    found = span(tree, values, text, what)
    if found.rows is not None:
        raise wrong(f"{what} takes a length of time such as {example}", text, tree)
    return found.duration


def rate(tree: exp.Expr, values: Values, text: str, what: str) -> float:
    """Return the rate in a clause: rows a second, above zero."""
    size = number(_amount(tree, values, text)) if isinstance(tree, Length) else None
    if size is None or size <= 0 or (isinstance(tree, Length) and _unit(tree) is not None):
        raise wrong(f"{what} takes rows a second, a number above zero such as 50", text, tree)
    return float(size)


def whole(
    tree: exp.Expr,
    values: Values,
    text: str,
    what: str,
    unit: str | None = None,
    least: int = 1,
) -> int:
    """Return the whole number in a clause, ``least`` or more, with its unit or without."""
    size = number(_amount(tree, values, text)) if isinstance(tree, Length) else None
    named = _unit(tree) if isinstance(tree, Length) else None
    fits = named is None or (unit is not None and named.upper().rstrip("S") == unit.rstrip("S"))
    if size is None or size.denominator != 1 or size < least or not fits:
        example = f", for example 2 {unit}" if unit else ""
        kind = "above zero" if least else "of zero or more"
        raise wrong(f"{what} takes a whole number {kind}{example}", text, tree)
    return int(size)


def has_unit_of_time(tree: exp.Expr) -> bool:
    """Return True if the length in a clause has a unit of time."""
    unit = _unit(tree) if isinstance(tree, Length) else None
    if unit is None:
        return False
    try:
        return nanoseconds(f"1 {unit}") > 0
    except OptionError:
        return False


def _amount(tree: Length, values: Values, text: str) -> exp.Expr:
    """Return the number of a length; a parameter's value stands in its place."""
    amount: exp.Expr = tree.this.unnest()
    if isinstance(amount, exp.Placeholder | exp.Parameter):
        return parameter(amount, values, text)
    if isinstance(amount, exp.Column) and amount.name in values:
        return given(values[amount.name], amount.this, text)
    return amount


def _unit(tree: Length) -> str | None:
    return tree.args["unit"].name if tree.args.get("unit") is not None else None
