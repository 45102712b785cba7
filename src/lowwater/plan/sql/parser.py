"""The parser turns texts into trees: queries, pipelines and expressions; errors have places."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.parser import Parser as SqlParser
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from lowwater.errors import ExpressionError, QueryError, unknown_name
from lowwater.plan.expressions import Formula
from lowwater.plan.sql.clauses import WithWindow
from lowwater.plan.sql.dialect import Lowwater
from lowwater.plan.text_places import pointed, wrong

LONGEST = 100_000
"""The greatest number of characters of a text."""


def statements(text: str) -> list[exp.Expr]:
    """Return the statements of a text, in order."""
    if not isinstance(text, str):
        raise QueryError(f"a query is a piece of text, not {text!r}")
    tokens = _tokens(text, "query")
    _refuse_other_beginnings(tokens, text)
    found = _parsed(tokens, text, lambda parser: parser._parse_statement(), "query")
    found = [tree for tree in found if not isinstance(tree, exp.Semicolon)]
    for tree in found:
        _refuse_unknown_types(tree, text)
    for tree, whole in zip(found, _by_statement(tokens), strict=False):
        tree.meta["statement"] = whole[0].start, whole[-1].end
    return found


def read_expression(text: str) -> Formula:
    """Return the formula of a text that is one expression."""
    if not isinstance(text, str) or not text.strip():
        raise QueryError(f"an expression is a piece of SQL text, not {text!r}")
    tokens = _tokens(text, "expression")
    found = _parsed(tokens, text, lambda parser: parser._parse_expression(), "expression")
    if len(found) != 1:
        raise wrong("cannot read this SQL: one expression is expected", text, *found[1:])
    tree = found[0]
    formula = Formula(tree, text, text)
    if window := tree.find(WithWindow):
        said = "a window stands before agg(...), window('1 minute', slide='10 seconds') for example"
        raise formula.wrong(said, window.args["clause"])
    if query := tree.find(exp.Query):
        raise formula.wrong("an expression cannot hold a query", query)
    _refuse_unknown_types(tree, text)
    return formula


def _tokens(text: str, kind: str) -> list[Token]:
    if len(text) > LONGEST:
        article = "an" if kind == "expression" else "a"
        said = f"{article} {kind} has at most {LONGEST:,} characters; this has {len(text):,}"
        raise QueryError(said)
    try:
        return Lowwater().tokenize(text)
    except TokenError:
        raise _not_closed(text) from None


def _parsed(
    tokens: list[Token], text: str, method: Callable[[SqlParser], exp.Expr | None], kind: str
) -> list[exp.Expr]:
    """Return the trees of a text, each read by one method of the parser."""
    try:
        trees = Lowwater().parser()._parse(method, tokens, text)
    except ParseError as error:
        opening = "cannot read this SQL" if kind == "expression" else "cannot read this"
        raise _not_read(error, tokens, text, opening) from None
    except RecursionError:
        raise pointed(f"this {kind} is nested too deeply to be read", text, 0, 1) from None
    except (ValueError, TypeError, AttributeError, IndexError, KeyError) as error:
        said = f"cannot read this {kind}: {type(error).__name__}: {error}"
        raise pointed(said, text, 0, 1) from None
    return [tree for tree in trees if tree is not None]


TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "STRING"),
    *("BINARY", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "ARRAY"),
)
"""The names of types that errors list."""


def _refuse_unknown_types(tree: exp.Expr, text: str) -> None:
    for each in tree.find_all(exp.DataType):
        if each.this == exp.DataType.Type.USERDEFINED:
            name = each.args["kind"]
            name = name if isinstance(name, str) else name.sql()
            raise wrong(unknown_name("type", name.upper(), TYPES), text, each, each.parent, tree)


def _by_statement(tokens: list[Token]) -> list[list[Token]]:
    """Return the tokens of each statement, without the semicolons in between."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


BEGINNINGS = ("SELECT", "WITH", "CREATE", "INSERT", "SET", "(")


def _refuse_other_beginnings(tokens: list[Token], text: str) -> None:
    """Refuse a statement that begins with an unknown word."""
    for first, *_ in _by_statement(tokens):
        if first.text.upper() in BEGINNINGS:
            continue
        near = get_close_matches(first.text.upper(), BEGINNINGS, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise pointed(
            f"a statement begins with SELECT, WITH, CREATE, INSERT or SET.{hint}",
            text,
            first.start,
            first.end - first.start + 1,
        )


_WORDS = """
SELECT DISTINCT FROM WHERE GROUP HAVING ORDER WINDOW UNION JOIN USING INNER OUTER LEFT RIGHT FULL
SEMI ANTI WITH BETWEEN EXISTS CASE WHEN THEN ELSE CAST INTERVAL RANGE SLIDE SESSION ROWS CREATE
STREAM VIEW INSERT INTO TUMBLE DESCRIPTOR FILTER WITHIN
"""
WORDS = frozenset(_WORDS.split())
"""Words of the language; near misses are hinted at."""


def _not_read(error: ParseError, tokens: list[Token], text: str, opening: str) -> ExpressionError:
    """Return an error of the parser at its place, or at a word before it that is nearly a known
    one."""
    first = error.errors[0] if error.errors else {}
    length = len(first.get("highlight") or "") or 1
    line = first.get("line") or 1
    column = max(1, (first.get("col") or 1) - length + 1)
    said = _reason(first.get("description"))
    if not first.get("hint"):
        before = [
            each
            for each in tokens
            if (each.line, each.col - each.end + each.start) <= (line, column)
        ]
        for token in reversed(before[-3:]):
            word = token.text.upper()
            near = get_close_matches(word, WORDS, n=1, cutoff=0.75)
            if near and word not in WORDS and token.token_type == TokenType.VAR:
                said = f"{opening}: {token.text!r}. Did you mean {near[0]}?"
                return pointed(said, text, token.start, len(token.text))
    return ExpressionError(f"{opening}: {said}", text, line, column, length)


def _reason(description: str | None) -> str:
    """Return the parser's reason, without its own names for things."""
    if not description or "<class" in description:
        return "something is missing here"
    if "Unexpected token" in description:
        return "it does not belong here"
    if description.startswith("Expected table name"):
        return "the name of a source is missing here"
    first, *rest = description.split(" ", 1)
    first = first.lower() if first.istitle() else first
    return " ".join([first, *rest])


_PIECES = re.compile(
    r"""--[^\n]*|/\*(?:.*?\*/)?|'(?:[^']|'')*(?:'|$)|"(?:[^"]|"")*(?:"|$)|`[^`]*(?:`|$)""",
    re.DOTALL,
)
"""Matches comments, texts and quoted names, closed or not."""


def _not_closed(text: str) -> ExpressionError:
    """Return an error at a text, a name or a comment that is not closed."""
    pieces = [each for each in _PIECES.finditer(text) if not each[0].startswith("--")]
    for each in pieces:
        if each[0] == "/*":
            return pointed("cannot read this: the comment is not closed", text, each.start(), 2)
    quoted = [each for each in pieces if not each[0].startswith("/*")]
    if not quoted:
        return pointed("cannot read this", text, 0, 1)
    found = next((each for each in quoted if "\n" in each[0]), quoted[-1])
    return pointed(f"cannot read this: {found[0][0]} is not closed", text, found.start(), 1)


def one_query(text: str) -> exp.Expr:
    """Return the only statement of a text, which must be a query."""
    found = statements(text)
    if not found:
        raise pointed("there is no query in this text", text, 0, 1)
    if len(found) > 1:
        raise wrong(
            f"one query is expected, and this text holds {len(found)} statements;"
            " several go into a pipeline file, for the command lowwater run",
            text,
            found[1],
        )
    return found[0]
