"""These tables list the functions of the language, with arguments and the rules that compute them.

A function that is not listed here is not part of the language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import polars as pl
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.parser import Parser as SqlParser

from lowwater.operators.aggregates import BUILT_IN
from lowwater.plan.language import numbers, operators, texts, times
from lowwater.plan.language.value import FunctionCall, Value

Rule = Callable[[FunctionCall], Value]
MANY = 1_000


@dataclass(frozen=True)
class Function:
    """A function of one row, under all its names."""

    names: tuple[str, ...]
    node: type[exp.Expr]
    """The tree that the parser makes of a call."""
    keys: tuple[str, ...]
    """The keys of the tree's arguments, in order; the last one may be a list."""
    least: int
    most: int
    rule: Rule
    besides: tuple[str, ...] = ()
    """Further keys that a call may have: the rule reads them, or they have no meaning."""

    @property
    def name(self) -> str:
        """The name that errors show."""
        return self.names[0]

    @property
    def arity(self) -> str:
        """The number of arguments, in words."""
        if self.most == MANY:
            number = f"at least {self.least}"
        else:
            number = f"{self.least}" if self.least == self.most else f"{self.least} or {self.most}"
        return f"{number} argument{'' if number.endswith('1') else 's'}"

    def arguments(self, tree: exp.Expr) -> list[exp.Expr]:
        """Return the arguments of a call."""
        found: list[exp.Expr] = []
        for key in self.keys:
            given = tree.args.get(key)
            found += given if isinstance(given, list) else [given] if given is not None else []
        return found

    def surplus(self, tree: exp.Expr) -> list[str]:
        """Return the keys of a call that are not understood."""
        known = {*self.keys, *self.besides, "safe", "_type"}
        return [key for key, given in tree.args.items() if given and key not in known]


def _one(names: str, node: type[exp.Expr], rule: Rule, *besides: str) -> Function:
    return Function(tuple(names.split()), node, ("this",), 1, 1, rule, besides)


def _two(names: str, node: type[exp.Expr], rule: Rule) -> Function:
    return Function(tuple(names.split()), node, ("this", "expression"), 2, 2, rule)


def _double(names: str, node: type[exp.Expr], compute: Callable[[pl.Expr], pl.Expr]) -> Function:
    return _one(names, node, numbers.of_double(compute))


FUNCTIONS: tuple[Function, ...] = (
    _one("abs", exp.Abs, numbers.absolute),
    _one("sign", exp.Sign, numbers.sign),
    _one("floor", exp.Floor, numbers.floor),
    _one("ceil ceiling", exp.Ceil, numbers.ceiling),
    Function(("round",), exp.Round, ("this", "decimals"), 1, 2, numbers.rounded),
    _double("sqrt", exp.Sqrt, lambda x: x.sqrt()),
    _double("cbrt", exp.Cbrt, lambda x: x.cbrt()),
    _double("exp", exp.Exp, lambda x: x.exp()),
    _double("ln", exp.Ln, lambda x: x.log()),
    _double("sin", exp.Sin, lambda x: x.sin()),
    _double("cos", exp.Cos, lambda x: x.cos()),
    _double("tan", exp.Tan, lambda x: x.tan()),
    _double("asin", exp.Asin, lambda x: x.arcsin()),
    _double("acos", exp.Acos, lambda x: x.arccos()),
    _double("atan", exp.Atan, lambda x: x.arctan()),
    Function(("log",), exp.Log, ("this", "expression"), 1, 2, numbers.logarithm),
    Function(("log10", "log2"), exp.Log, ("this", "expression"), 1, 1, numbers.logarithm),
    _two("power pow", exp.Pow, numbers.power),
    _two("mod", exp.Mod, operators.remainder),
    _one("isnan is_nan", exp.IsNan, numbers.is_nan),
    Function(
        ("greatest",),
        exp.Greatest,
        ("this", "expressions"),
        1,
        MANY,
        operators.extreme,
        ("ignore_nulls",),
    ),
    Function(
        ("least",),
        exp.Least,
        ("this", "expressions"),
        1,
        MANY,
        operators.extreme,
        ("ignore_nulls",),
    ),
    Function(("coalesce",), exp.Coalesce, ("this", "expressions"), 1, MANY, operators.coalesce),
    Function(
        ("ifnull", "nvl"),
        exp.Coalesce,
        ("this", "expressions"),
        2,
        2,
        operators.coalesce,
        ("is_nvl",),
    ),
    _two("nullif", exp.Nullif, operators.nullif),
    _one("upper", exp.Upper, texts.changed(lambda text: text.str.to_uppercase())),
    _one("lower", exp.Lower, texts.changed(lambda text: text.str.to_lowercase())),
    _one("length len char_length character_length", exp.Length, texts.length),
    _one("reverse", exp.Reverse, texts.changed(lambda text: text.str.reverse())),
    Function(("substr", "substring"), exp.Substring, ("this", "start", "length"), 2, 3, texts.part),
    _two("left", exp.Left, texts.left),
    _two("right", exp.Right, texts.right),
    Function(
        ("trim", "ltrim", "rtrim"),
        exp.Trim,
        ("this", "expression"),
        1,
        2,
        texts.stripped,
        ("position",),
    ),
    Function(
        ("replace",), exp.Replace, ("this", "expression", "replacement"), 3, 3, texts.replaced
    ),
    Function(
        ("lpad", "rpad"),
        exp.Pad,
        ("this", "expression", "fill_pattern"),
        3,
        3,
        texts.padded,
        ("is_left",),
    ),
    Function(
        ("split_part",), exp.SplitPart, ("this", "delimiter", "part_index"), 3, 3, texts.piece
    ),
    Function(
        ("strpos", "position", "instr", "str_position"),
        exp.StrPosition,
        ("this", "substr"),
        2,
        2,
        texts.position,
    ),
    _two(
        "contains",
        exp.Contains,
        texts.found_by(lambda text, part: text.str.contains(part, literal=True)),
    ),
    _two(
        "starts_with", exp.StartsWith, texts.found_by(lambda text, part: text.str.starts_with(part))
    ),
    _two("ends_with", exp.EndsWith, texts.found_by(lambda text, part: text.str.ends_with(part))),
    _two("regexp_like", exp.RegexpLike, texts.matches),
    Function(("concat",), exp.Concat, ("expressions",), 1, MANY, texts.concatenated, ("coalesce",)),
    Function(
        ("concat_ws",),
        exp.ConcatWs,
        ("expressions",),
        2,
        MANY,
        texts.concatenated_with,
        ("coalesce",),
    ),
    *(
        _one(name, node, times.extract)
        for name, node in (
            ("year", exp.Year),
            ("quarter", exp.Quarter),
            ("month", exp.Month),
            ("week", exp.Week),
            ("day", exp.Day),
            ("hour", exp.Hour),
            ("minute", exp.Minute),
            ("second", exp.Second),
        )
    ),
    Function(("extract",), exp.Extract, ("expression",), 1, 1, times.extract, ("this",)),
    Function(("date_part",), exp.Anonymous, ("expressions",), 2, 2, times.date_part, ("this",)),
    Function(("strftime",), exp.Anonymous, ("expressions",), 2, 2, times.written, ("this",)),
    Function(("date_trunc",), exp.DateTrunc, ("unit", "this"), 2, 2, times.cut),
    Function(("if",), exp.If, ("this", "true", "false"), 3, 3, operators.chosen),
)
BY_NAME: Mapping[str, Function] = {name: each for each in FUNCTIONS for name in each.names}
_BY_NODE: Mapping[type[exp.Expr], Function] = {
    each.node: each for each in reversed(FUNCTIONS) if each.node is not exp.Anonymous
}


def function_of(tree: exp.Expr) -> Function | None:
    """Return the function that a tree is a call of; None if there is none."""
    if isinstance(tree, exp.Anonymous):
        found = BY_NAME.get(tree.name.lower())
        return found if found is not None and found.node is exp.Anonymous else None
    return _BY_NODE.get(type(tree))


_ELSEWHERE = {"to_char": "strftime", "date_format": "strftime", "regexp_matches": "regexp_like"}


def unknown_function(name: str) -> str:
    """Return the message that there is no such function, with the nearest name."""
    name = name.lower()
    near = get_close_matches(name, {*BY_NAME, *BUILT_IN}, n=1, cutoff=0.7)
    meant = _ELSEWHERE.get(name) or (near[0] if near else None)
    return f"unknown function {name!r}." + (f" Did you mean {meant!r}?" if meant else "")


def called(tree: exp.Expr) -> str:
    """Return the name under which errors show a call."""
    if isinstance(tree, exp.Pad):
        return "lpad" if tree.args.get("is_left") else "rpad"
    found = function_of(tree)
    return found.name if found is not None else tree.key


def _counted(name: str, build: Callable[..., exp.Expr]) -> Callable[..., exp.Expr]:
    """Return a builder of calls; calls with a wrong number of arguments stay as written, to be
    refused."""
    function = BY_NAME[name]

    def built(args: Sequence[exp.Expr], dialect: Any = None) -> exp.Expr:
        if not function.least <= len(args) <= function.most:
            return exp.Anonymous(this=name, expressions=list(args))
        try:
            return build(args)
        except TypeError:
            return build(args, dialect=dialect or Dialect())

    return built


PARSED: dict[str, Callable[..., exp.Expr]] = {
    name: _counted(name.lower(), build) if name.lower() in BY_NAME else build
    for name, build in SqlParser.FUNCTIONS.items()
}
"""The parser's builders of calls, by name."""
