"""This module parses the clauses that the query language adds to SQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from typing import Any, ClassVar, TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parser import Parser as SqlParser
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

E = TypeVar("E", bound=exp.Expr)
PARTS = (
    *("PARTITION BY", "RANGE", "SLIDE", "EXPIRE", "WA"),
    *("SESSION", "FLUSH", "KEEP", "TABLE"),
)
"""The words that begin the parts of a window clause."""
FLUSH_PARTS = ("EVERY", "WITHIN")
WINDOWS_WORDS = ("LAZY", "EAGER")
"""The words of WINDOWS."""
JOIN_PARTS = ("MEMORY", "STRATEGY", "ACCURACY", "LATENCY", "READ_AHEAD", "UNMATCHED")
"""The words that begin the parts of a join clause."""
_AFTER_ALL = (
    "a clause of joins is that of all joins of the query: it goes after the last source, or after"
    " the last condition"
)


class WindowClause(exp.Expression):
    """``[RANGE 5 minutes, SLIDE 1 minute, WA ts]``; parts that are left out are None."""

    arg_types: ClassVar = {part.lower().replace(" ", "_"): False for part in PARTS}


class FlushPolicy(exp.Expression):
    """``SLOW EVERY 160 ROWS WITHIN 2 WINDOWS`` or ``LAZY WITHIN 2 WINDOWS``."""

    arg_types: ClassVar = {"this": True, "every": False, "within": False}


class SlideOnChange(exp.Expression):
    """``ON CHANGE``: the slide of a window that moves with every row."""

    arg_types: ClassVar = {}


class Length(exp.Expression):
    """A number with a unit: ``5 minutes``, ``100 ROWS``, or bare."""

    arg_types: ClassVar = {"this": True, "unit": False}


class Proportion(exp.Expression):
    """A part of a whole, as a number or in percent."""

    arg_types: ClassVar = {"this": True, "percent": False}


class WithWindow(exp.Expression):
    """A source, a union or a select item with a window clause."""

    arg_types: ClassVar = {"this": True, "clause": True, "alias": False}


class OrderStrategy(exp.Expression):
    """``USING ADAPTIVE ALPHA 0.3`` after ORDER BY, the strategy that orders a join's results."""

    arg_types: ClassVar = {"this": True, "alpha": False}


class JoinClause(exp.Expression):
    """``[MEMORY '64 MB', STRATEGY hybrid]``, the options of joins without a window, or
    ``[UNMATCHED SLOW EVERY 160 ROWS WITHIN 1 MINUTE]``, the pace of rows without a partner."""

    arg_types: ClassVar = {part.lower(): False for part in JOIN_PARTS}


class Weight(exp.Expression):
    """``'GOOG' = 60``: the weight of a key, or the period at which a reader looks at it."""

    arg_types: ClassVar = {"this": True, "expression": True}


STREAM_CLAUSES = {
    "PROGRESS": "nothing",
    "ORDERED BY": "columns",
    "ON": "columns",
    "UNIT": "word",
    "WITHIN": "length",
    "LEARNED": "share",
    "UNPROMISED": "nothing",
    "DISORDER": "length",
    "MULTIPLICITY": "length",
    "RATE": "length",
    "DELAY": "length",
    "PUNCTUATED BY": "columns",
    "ALONE BY": "columns",
    "JOINTLY": "nothing",
    "ENDED BY": "columns",
    "PER CHANNEL": "columns",
    "PER GROUP": "columns",
    "IDLE ON DEMAND": "nothing",
    "HEARTBEAT EVERY": "length",
    "IDLE HEARTBEAT EVERY": "length",
    "BEHIND CLOCK": "length",
    "STALE AFTER": "length",
    "LATE TO": "text",
    "UPDATE KEY": "key",
    "SCHEDULE": "words",
    "WEIGHTS": "weights",
    "BUDGET": "length",
    "COMPLETE WITHIN": "length",
    "WINDOWS": "words",
    "EXPIRE": "length",
    "DELETE WHEN": "condition",
    "FRESH WITHIN": "targets",
    "FOLLOW": "nothing",
    "OPTIONS": "pairs",
}

CLAUSE_BEGINS = tuple(dict.fromkeys(words.split()[0] for words in STREAM_CLAUSES))


_UNITS = (TokenType.VAR, TokenType.ROW, TokenType.ROWS, TokenType.WINDOW)
"""Tokens that may be the unit of a number."""
_JOINING = (
    *(TokenType.COMMA, TokenType.JOIN, TokenType.INNER, TokenType.LEFT, TokenType.RIGHT),
    *(TokenType.FULL, TokenType.CROSS, TokenType.SEMI, TokenType.ANTI),
)
"""Tokens that begin another source."""


class ClauseParser(SqlParser):
    """Parses the clauses; :class:`~lowwater.plan.sql.dialect.Parser` parses the rest."""

    def expression(
        self, instance: E, token: Token | None = None, comments: list[str] | None = None
    ) -> E:
        """Return the tree with its place; the SQL parser notes the places of some leaves only."""
        if token is None and "start" not in instance.meta and self._prev and is_leaf(instance):
            token = self._prev
        return super().expression(instance, token, comments)

    def _raise_hinted(self, message: str, hint: str, token: Token | None = None) -> None:
        """Raise an error about a token; ``hint`` is the part of the message that names the word
        that may be meant, or empty."""
        try:
            self.raise_error(message, token or self._curr)
        except ParseError as error:
            error.errors[0]["hint"] = hint
            raise

    def _spanned(self, tree: E, first: Token) -> E:
        """Return a tree with the place from its first token to the one before this one."""
        tree.meta.update(line=first.line, start=first.start, end=self._prev.end)
        return tree

    # ---- windows ---------------------------------------------------------------------------

    def _at_window_clause(self) -> bool:
        return self._at_brackets(PARTS)

    def _at_brackets(self, words: Collection[str]) -> bool:
        """Return True if a bracket opens here with one of these words behind it."""
        opens = self._curr and self._curr.token_type == TokenType.L_BRACKET
        return bool(opens and self._next and self._next.text.upper() in words)

    def _parse_brackets(
        self, words: tuple[str, ...], kind: str, part: Callable[[str], exp.Expr | None]
    ) -> dict[str, exp.Expr | None]:
        """Parse ``[WORD ..., WORD ...]`` by word; ``part`` parses what comes after a word."""
        self._match(TokenType.L_BRACKET)
        parts: dict[str, exp.Expr | None] = {}
        while True:
            token = self._curr
            if not self._match_texts(words):
                known = f"{', '.join(words[:-1])} and {words[-1]}"
                near = hint_at(token.text.upper(), words) if token else ""
                self._raise_hinted(f"a {kind} has the parts {known}.{near}", near)
                break
            name = "_".join(self._prev.text.lower().split())
            if name in parts:
                self.raise_error(f"{self._prev.text.upper()} is given twice", token)
            parts[name] = part(name)
            if not self._match(TokenType.COMMA) and not self._at_word(words):
                break
        if not self._match(TokenType.R_BRACKET):
            self.raise_error(f"the {kind} is not closed: a comma or ] is missing")
        return parts

    def _at_word(self, words: Collection[str], ahead: int = 0) -> bool:
        """Return True if one of the words comes next, or behind so many tokens."""
        at = self._index + ahead
        return at < len(self._tokens) and self._tokens[at].text.upper() in words

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if self._at_join_clause():  # the clause belongs to the joins, not to the source before it
            if isinstance(this, WithWindow | exp.Bracket):
                self.raise_error(_AFTER_ALL, self._curr)
                self._parse_join_brackets()
            return this
        if this is not None and self._at_window_clause():
            clause = self._parse_window_brackets()
            return self._parse_bracket(self.expression(WithWindow(this=this, clause=clause)))
        return super()._parse_bracket(this)

    def _parse_column_ops(self, this: exp.Expr | None) -> exp.Expr | None:
        return this if self._at_join_clause() else super()._parse_column_ops(this)

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        item = super()._parse_alias(this, explicit)
        if isinstance(item, exp.Alias) and self._at_window_clause():
            clause = self._parse_window_brackets()
            item.set("this", self.expression(WithWindow(this=item.this, clause=clause)))
        return item

    def _parse_window_brackets(self) -> WindowClause:
        opening = self._curr
        parts = self._parse_brackets(PARTS, "window clause", self._parse_window_part)
        return placed(self.expression(WindowClause(**parts)), opening)

    def _parse_window_part(self, name: str) -> exp.Expr | None:
        if name == "wa":
            return self._parse_column()
        if name == "partition_by":
            return self._parse_keys()
        if name == "flush":
            return self._parse_flush()
        if name == "slide" and self._match(TokenType.ON):
            return self._parse_on_change()
        return self._parse_word() if name == "keep" else self._parse_length()

    def _parse_keys(self) -> exp.Expr:
        """Parse columns up to the next part of the clause."""
        columns = [self._parse_column()]
        while (
            self._curr
            and self._curr.token_type == TokenType.COMMA
            and not self._at_word(PARTS, ahead=1)
        ):
            self._advance()
            columns.append(self._parse_column())
        if None in columns:
            self.raise_error("PARTITION BY names columns", self._curr)
        return exp.Tuple(expressions=columns)

    def _parse_word(self, known: str = "PANES, WINDOWS or ROWS") -> exp.Expr:
        token = self._curr
        if not token or not token.text.isalpha():
            self.raise_error(f"a word is missing: {known}", token)
            return exp.var("")
        self._advance()
        return placed(self.expression(exp.var(self._prev.text)), self._prev)

    def _parse_on_change(self) -> exp.Expr:
        token = self._prev
        if not self._match_text_seq("CHANGE"):
            self.raise_error("SLIDE is a length of time, for example 1 minute, or ON CHANGE", token)
        return placed(self.expression(SlideOnChange()), token)

    def _parse_flush(self) -> exp.Expr:
        word = self._parse_word("SLOW or LAZY")
        parts = {}
        while self._match_texts(FLUSH_PARTS):
            token = self._prev
            if token.text.lower() in parts:
                self.raise_error(f"{token.text.upper()} is given twice", token)
            parts[token.text.lower()] = self._parse_length()
        return self.expression(FlushPolicy(this=word, **parts))

    def _parse_length(self) -> exp.Expr:
        """Parse ``5 minutes``, ``INTERVAL '5' MINUTE``, ``100 ROWS``, ``:n seconds`` or a
        number."""
        token = self._curr
        interval = self._parse_interval()
        if interval is not None:
            return interval
        number = self._parse_unary()
        if number is None:
            self.raise_error("a length is missing, for example 5 minutes", token)
            number = exp.Literal.number(0)
        unit = None
        if self._at_unit(number):
            self._advance()
            unit = exp.var(self._prev.text)
        return self._spanned(self.expression(Length(this=number, unit=unit)), token)

    def _at_unit(self, number: exp.Expr) -> bool:
        """Return True if the next word is the unit of a number; a text contains its own."""
        token = self._curr
        if not token or token.token_type not in _UNITS:
            return False
        if isinstance(number, exp.Literal) and number.is_string:
            return False
        word, following = token.text.upper(), self._next.text.upper() if self._next else ""
        if word == "WINDOWS":
            return following not in WINDOWS_WORDS
        return word not in (*CLAUSE_BEGINS, *FLUSH_PARTS, *PARTS)

    def _parse_trailing_window(self) -> tuple[str, Any]:
        numbers = (TokenType.NUMBER, TokenType.INTERVAL, TokenType.PLACEHOLDER, TokenType.COLON)
        if self._next and self._next.token_type in numbers:
            self._match(TokenType.WINDOW)
            token = self._prev
            clause = self.expression(WindowClause(range=self._parse_length()))
            return "trailing_window", placed(clause, token)
        return "windows", self._parse_window_clause()

    def _parse_order(self, *given: Any, **named: Any) -> exp.Expr | None:
        order = super()._parse_order(*given, **named)
        if isinstance(order, exp.Order) and self._match(TokenType.USING):
            order.set("strategy", self._parse_strategy())
        return order

    def _parse_strategy(self) -> exp.Expr:
        """Parse a name of one or two words with a dash between them, and ALPHA with a number."""
        name = self._parse_dashed("SYNC-FILTER, FILTER-ORDER or ADAPTIVE")
        alpha = self._parse_unary() if self._match_text_seq("ALPHA") else None
        return self.expression(OrderStrategy(this=name, alpha=alpha))

    def _parse_dashed(self, known: str) -> exp.Expr:
        """Parse a name of words with dashes between them."""
        first = word = self._parse_word(known)
        words = [word.name]
        while self._match(TokenType.DASH):
            word = self._parse_word(known)
            words.append(word.name)
        name = exp.var("-".join(words).lower())
        name.meta.update(first.meta, end=word.meta.get("end", 0))
        return name

    # ---- updates ---------------------------------------------------------------------------

    def _parse_update_key(self) -> list[exp.Expr]:
        """Parse columns, in parentheses or not; in parentheses there may be none."""
        if not self._match(TokenType.L_PAREN):
            return self._parse_csv(self._parse_id_var)
        if self._match(TokenType.R_PAREN):
            return []
        columns = self._parse_csv(self._parse_id_var)
        self._match_r_paren()
        return columns

    def _parse_weight(self) -> exp.Expr:
        """Parse ``'GOOG' = 60`` or ``('GOOG', 'NYSE') = 1 minute``."""
        return self._parse_of_key("a weight is a key and a number, for example 'GOOG' = 60")

    def _parse_target(self) -> exp.Expr:
        """Parse ``'GOOG' = 5 seconds``."""
        return self._parse_of_key(
            "a target is a key and a length of time, for example 'GOOG' = 5 seconds"
        )

    def _parse_of_key(self, expected: str) -> exp.Expr:
        """Parse a key, ``=`` and a number or length; ``expected`` says what is missing."""
        token = self._curr
        key = self._parse_unary()
        if key is None or not self._match(TokenType.EQ):
            self.raise_error(expected, token)
            return exp.null()
        weight = self.expression(Weight(this=key, expression=self._parse_length()))
        return placed(weight, token)

    # ---- joins -----------------------------------------------------------------------------

    def _at_join_clause(self) -> bool:
        return self._at_brackets(JOIN_PARTS)

    def _parse_join_brackets(self) -> JoinClause | None:
        if not self._at_join_clause():
            return None
        opening = self._curr
        parts = self._parse_brackets(JOIN_PARTS, "join clause", self._parse_join_part)
        clause = placed(self.expression(JoinClause(**parts)), opening)
        if self._curr and self._curr.token_type in _JOINING:
            self.raise_error(_AFTER_ALL, opening)
        return clause

    def _parse_join_part(self, name: str) -> exp.Expr | None:
        if name == "strategy":
            return self._parse_word("AUTO, PLAIN, MSF, DBF or HYBRID")
        if name == "accuracy":
            return self._parse_share()
        if name == "read_ahead" and self._match_text_seq("AUTO"):
            return placed(self.expression(exp.var("auto")), self._prev)
        return self._parse_flush() if name == "unmatched" else self._parse_length()

    # ---- parts of clauses ------------------------------------------------------------------

    def _parse_share(self) -> exp.Expr | None:
        """Parse ``0.999``, ``99.9 %``, ``:share`` or nothing."""
        token = self._curr
        if not token or token.token_type == TokenType.SEMICOLON:
            return None
        if token.text.upper() in CLAUSE_BEGINS:
            return None
        number = self._parse_unary()
        percent = self._match(TokenType.MOD) or self._match_text_seq("PERCENT")
        share = self.expression(Proportion(this=number, percent=bool(percent)))
        return self._spanned(share, token)


def hint_at(word: str, known: Iterable[str]) -> str:
    """Return a hint at the known word that is nearest; empty if none is near."""
    near = get_close_matches(word, list(known), n=1, cutoff=0.75)
    return f" Did you mean {near[0]}?" if near else ""


def is_leaf(tree: exp.Expr) -> bool:
    """Return True if a tree has no tree inside it."""
    return not any(isinstance(each, exp.Expr | list) for each in tree.args.values())


def placed(tree: E, token: Any) -> E:
    """Return a tree with the place of a token."""
    tree.meta.update(line=token.line, start=token.start, end=token.end)
    return tree
