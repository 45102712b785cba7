"""Places in a text, for errors that underline what they are about."""

from __future__ import annotations

from sqlglot import exp

from lowwater.errors import ExpressionError


def place(tree: exp.Expr) -> tuple[int, int] | None:
    """Where a tree stands in the text: its first and last character, as far as is known."""
    spots = [(node.meta["start"], node.meta["end"]) for node in tree.walk() if "start" in node.meta]
    return (min(s for s, _ in spots), max(e for _, e in spots)) if spots else None


def pointed(message: str, text: str, start: int, length: int) -> ExpressionError:
    """An error that points at a stretch of the text, within its first line."""
    line = text.count("\n", 0, start) + 1
    begin = text.rfind("\n", 0, start) + 1
    rest = text.find("\n", start)
    longest = (len(text) if rest < 0 else rest) - start
    return ExpressionError(message, text, line, start - begin + 1, max(1, min(length, longest)))


def wrong(message: str, text: str, *trees: exp.Expr | None) -> ExpressionError:
    """An error about a text, pointing at the first of these trees whose place is known."""
    for tree in trees:
        spot = place(tree) if tree is not None else None
        if spot is not None:
            return pointed(message, text, spot[0], spot[1] - spot[0] + 1)
    return pointed(message, text, len(text) - len(text.lstrip()), 1)
