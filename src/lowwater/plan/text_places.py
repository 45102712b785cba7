"""This module finds places in a text, so that errors underline the part that is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from sqlglot import exp

from lowwater.errors import ExpressionError, LowwaterError, QueryError, Term


def place(tree: exp.Expr) -> tuple[int, int] | None:
    """Return the first and the last character of a tree in its text; None if not known."""
    spots = [(node.meta["start"], node.meta["end"]) for node in tree.walk() if "start" in node.meta]
    return (min(s for s, _ in spots), max(e for _, e in spots)) if spots else None


def line_of(tree: exp.Expr, text: str) -> int:
    """Return the line, from 1, in which a statement or another tree begins."""
    spot = tree.meta.get("statement") or place(tree)
    return text.count("\n", 0, spot[0]) + 1 if spot else 1


Message = str | Sequence[str | Term]
"""A message, or the parts that it is made of."""


def pointed(
    message: Message, text: str, start: int, length: int, about: Term | None = None
) -> ExpressionError:
    """Return an error that underlines ``length`` characters from ``start``, within one line."""
    line = text.count("\n", 0, start) + 1
    begin = text.rfind("\n", 0, start) + 1
    rest = text.find("\n", start)
    longest = (len(text) if rest < 0 else rest) - start
    length = max(1, min(length, longest))
    return ExpressionError(message, text, line, start - begin + 1, length, about=about)


def wrong(
    message: Message, text: str, *trees: exp.Expr | None, about: Term | None = None
) -> ExpressionError:
    """Return an error that underlines the first of these trees whose place in the text is known.

    If no place is known, it points at the first character that is not blank.
    """
    for tree in trees:
        spot = place(tree) if tree is not None else None
        if spot is not None:
            return pointed(message, text, spot[0], spot[1] - spot[0] + 1, about)
    return pointed(message, text, len(text) - len(text.lstrip()), 1, about)


@contextmanager
def under(option: Term) -> Iterator[None]:
    """Begin the messages of errors about an expression with the option that gives it."""
    try:
        yield
    except ExpressionError as error:
        raise error.with_parts(option, ": ", *error.parts) from None


@contextmanager
def at(
    text: str, *trees: exp.Expr | None, clauses: Mapping[str, exp.Expr] | None = None
) -> Iterator[None]:
    """Give errors raised inside a place in the text, and the words of clauses.

    The place is that of the clause the error is about, if it is among ``clauses``, else that of
    the first of the trees. Errors that have a place in this text already keep it.
    """
    try:
        yield
    except ExpressionError as error:
        if error.text != text:
            raise _moved(error, text, *trees, clauses=clauses) from None
        if error.in_clauses == error.message:
            raise
        raise error.with_parts(error.in_clauses) from None
    except QueryError as error:
        raise _moved(error, text, *trees, clauses=clauses) from None
    except LowwaterError as error:
        raise wrong(str(error), text, *trees) from None


def _moved(
    error: QueryError,
    text: str,
    *trees: exp.Expr | None,
    clauses: Mapping[str, exp.Expr] | None,
) -> ExpressionError:
    about = error.about
    first = clauses.get(about.clause) if clauses and about is not None else None
    return wrong(error.in_clauses, text, first, *trees, about=about)
