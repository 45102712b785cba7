"""This module refuses parts of SQL that the parser reads and that have no meaning over a stream."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from lowwater.plan.text_places import wrong

UNDERSTOOD: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        ["with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "order"]
    )
    | {"trailing_window", "join_options"},
    exp.Union: frozenset(["with_", "this", "expression", "distinct", "order"]),
    exp.Subquery: frozenset(["with_", "this", "alias", "order"]),
    exp.With: frozenset({"expressions", "recursive"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.Table: frozenset({"this", "alias", "db", "catalog"}),
    exp.TableAlias: frozenset({"this"}),
    exp.Join: frozenset(["this", "on", "using", "side", "kind", "method"]),
    exp.Group: frozenset({"expressions"}),
}
"""The parts of each kind of tree that are planned."""

_NO_END = "a stream has no end, so {} cannot be counted from there"
REASONS: Mapping[str, str] = {
    "limit": _NO_END.format("LIMIT"),
    "offset": _NO_END.format("OFFSET"),
    "qualify": "QUALIFY looks at other rows; put a window and an aggregate instead",
    "windows": "named windows look at other rows; a window of a stream is written"
    " [RANGE 1 minute, SLIDE 1 minute, WA ts] after the source",
    "trailing_window": "WINDOW goes with one SELECT, not with a union of several",
    "join_options": "a clause of joins goes with one SELECT that joins",
    "sort": "use ORDER BY",
    "columns": "names for the columns of a source are given inside it, with AS",
    "joins": "a join in parentheses is written as a query: (SELECT ... FROM a JOIN b ON ...) AS c",
    "by_name": "UNION takes columns by their places; leave BY NAME out",
    **dict.fromkeys(
        ("grouping_sets", "cube", "rollup", "totals", "all"),
        "GROUP BY lists columns or expressions; grouping sets are several queries",
    ),
}
_WORDS = {
    "kind": "this kind of SELECT",
    "hint": "a hint",
    "hints": "a hint",
    "operation_modifiers": "a modifier after SELECT",
    "laterals": "LATERAL",
    "sample": "TABLESAMPLE",
    "pivots": "PIVOT",
    "into": "SELECT INTO",
    "locks": "FOR UPDATE",
    "for_": "FOR",
    "connect": "CONNECT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "match": "MATCH_RECOGNIZE",
    "system_time": "a version of a table",
    "version": "a version of a table",
}


def refuse_unread(tree: exp.Expr, text: str) -> None:
    """Refuse a tree with a part that would be ignored."""
    understood = UNDERSTOOD.get(type(tree))
    if understood is None:
        return
    for key, value in tree.args.items():
        if key in understood or not value:
            continue
        word = _WORDS.get(key, key.rstrip("_").upper().replace("_", " "))
        reason = REASONS.get(key, f"{word} is not part of the language")
        if key in UNDERSTOOD[exp.Select] and key not in REASONS:
            reason = f"after a query in parentheses, {word} takes a SELECT of its own around it"
        parts = value if isinstance(value, list) else [value]
        raise wrong(reason, text, *(each for each in parts if isinstance(each, exp.Expr)), tree)
    alias = tree.args.get("alias")
    if isinstance(alias, exp.TableAlias):
        refuse_unread(alias, text)
