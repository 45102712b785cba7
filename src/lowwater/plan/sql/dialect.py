"""The parser of the query language extends the SQL parser; it turns text into trees.

The language adds to SQL a window clause in brackets after a source, a union or a select item, and
one after joins (``clauses``); ``UNION`` between sources in FROM; a trailing ``WINDOW`` of a length;
and the statements of a pipeline file. The modules that read the trees define their meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar, TypeVar

from sqlglot import exp, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.parser import Parser as SqlParser
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from lowwater.plan.language.functions import PARSED
from lowwater.plan.sql.clauses import (
    CLAUSE_BEGINS,
    STREAM_CLAUSES,
    ClauseParser,
    WindowClause,
    WithWindow,
    hint_at,
    placed,
)

T = TypeVar("T")


class SourceUnion(exp.Expression):
    """Sources united by UNION in FROM."""

    arg_types: ClassVar = {"expressions": True, "alias": False}


class TableFunction(exp.Expression):
    """``TUMBLE(TABLE source, DESCRIPTOR(ts), INTERVAL '1' MINUTE)``, as a window clause."""

    arg_types: ClassVar = {"this": True, "clause": True, "alias": False}


class CreateStream(exp.Expression):
    """``CREATE STREAM name (columns) FROM 'format:path' ...``, with its clauses in order."""

    arg_types: ClassVar = {"this": True, "columns": False, "location": True, "clauses": False}


class StreamClause(exp.Expression):
    """One clause of a stream: its name and its arguments."""

    arg_types: ClassVar = {
        "this": True,
        "expressions": False,
        "length": False,
        "share": False,
        "condition": False,
    }


class InsertInto(exp.Expression):
    """``INSERT INTO 'format:path' SELECT ...``."""

    arg_types: ClassVar = {"this": True, "expression": True}


class SetOption(exp.Expression):
    """``SET MEMORY = '1 GB'``: an option of all queries of a pipeline file."""

    arg_types: ClassVar = {"this": True, "expression": True}


class Parser(ClauseParser):
    """Parses the language: SQL, clauses, sources and the statements of a pipeline file."""

    FUNCTIONS: ClassVar = PARSED
    QUERY_MODIFIER_PARSERS: ClassVar = {
        **SqlParser.QUERY_MODIFIER_PARSERS,
        TokenType.WINDOW: lambda self: self._parse_trailing_window(),
        TokenType.L_BRACKET: lambda self: ("join_options", self._parse_join_brackets()),
    }
    STATEMENT_PARSERS: ClassVar = {
        **SqlParser.STATEMENT_PARSERS,
        TokenType.CREATE: lambda self: self._parse_create_stream() or self._parse_create(),
        TokenType.INSERT: lambda self: self._parse_insert_into() or self._parse_insert(),
        TokenType.SET: lambda self: self._parse_set_option(),
    }

    def _parse_csv(
        self, parse_method: Callable[[], T | None], sep: TokenType = TokenType.COMMA
    ) -> list[T]:
        def parse() -> T | None:
            after = self._prev if self._prev and self._prev.token_type == sep else None
            found = parse_method()
            if found is None and self._curr and self._curr.token_type == sep:
                self.raise_error("something is missing before the comma")
            if found is None and after is not None:
                self.raise_error("something is missing after the comma", after)
            return found

        return super()._parse_csv(parse, sep)

    def _parse_types(self, *given: Any, **named: Any) -> exp.Expr | None:
        token = self._curr
        found = super()._parse_types(*given, **named)
        return self._spanned(found, token) if isinstance(found, exp.DataType) and token else found

    def _parse_primary(self) -> exp.Expr | None:
        token = self._curr
        found = super()._parse_primary()
        if isinstance(found, exp.Literal) and token and token.token_type == TokenType.DOT:
            return self._spanned(found, token)
        return found

    def _parse_group(self, *given: Any, **named: Any) -> exp.Group | None:
        token = self._curr
        found = super()._parse_group(*given, **named)
        if found is None or found.expressions or not token:
            return found
        return self._spanned(found, token)

    # ---- sources ---------------------------------------------------------------------------

    def _parse_join(self, *given: Any, **named: Any) -> exp.Join | None:
        comma = self._curr if self._match(TokenType.COMMA, advance=False) else None
        found = super()._parse_join(*given, **named)
        if comma is not None and (found is None or found.this is None):
            self.raise_error("a source is missing after the comma", comma)
        return found

    def _parse_table(
        self,
        schema: bool = False,
        joins: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
        *rest: Any,
        **named: Any,
    ) -> exp.Expr | None:
        first = self._parse_table_function()
        if first is None:
            first = super()._parse_table(schema, joins, alias_tokens, *rest, **named)
            first = self._with_window(first)
        if first is None or not self._at_source_union():
            return first
        sources = [first]
        while self._at_source_union():
            self._match(TokenType.UNION)
            self._match_texts(("ALL",))
            more = super()._parse_table(False, False, alias_tokens)
            if more is None:
                self.raise_error("a source is missing after UNION")
                break
            sources.append(self._with_window(more))
        return self._lifted(sources)

    def _parse_table_function(self) -> exp.Expr | None:
        """Parse TUMBLE, HOP or SESSION over a source, perhaps inside TABLE(...)."""
        index = self._index
        wrapped = self._match_text_seq("TABLE") and self._match(TokenType.L_PAREN)
        token = self._curr
        name = token.text.upper() if token and token.token_type == TokenType.VAR else ""
        called = self._next and self._next.token_type == TokenType.L_PAREN
        if called and name and name not in TABLE_FUNCTIONS:
            known = ", ".join(TABLE_FUNCTIONS)
            near = hint_at(name, TABLE_FUNCTIONS)
            said = f"the functions that stand in FROM are {known}.{near}"
            self._raise_hinted(said, near, token)
        if not (self._match_texts(TABLE_FUNCTIONS) and self._match(TokenType.L_PAREN)):
            self._retreat(index)
            return None
        parts = TABLE_FUNCTIONS[token.text.upper()]
        self._match_text_seq("TABLE")
        source = self._parse_table()
        if source is None:
            self.raise_error("the name of a stream is missing")
        clause = WindowClause()
        if self._match(TokenType.COMMA) and self._match_text_seq("DESCRIPTOR"):
            clause.set("wa", self._parse_wrapped(self._parse_column))
            self._match(TokenType.COMMA)
        for at, part in enumerate(parts):
            if at and not self._match(TokenType.COMMA):
                self.raise_error(f"{token.text} takes {len(parts)} lengths of time")
            clause.set(part, self._parse_length())
        for _ in range(2 if wrapped else 1):
            self._match_r_paren()
        alias = self._parse_table_alias(alias_tokens=self.TABLE_ALIAS_TOKENS)
        return self.expression(
            TableFunction(this=source, clause=placed(clause, token), alias=alias)
        )

    def _at_source_union(self) -> bool:
        """Return True if UNION comes with a source behind it, and not with a query."""
        if not self._curr or self._curr.token_type != TokenType.UNION:
            return False
        ahead = self._tokens[self._index + 1 : self._index + 3]
        if ahead and ahead[0].token_type in (TokenType.ALL, TokenType.DISTINCT):
            if ahead[0].token_type == TokenType.DISTINCT:
                return False
            ahead = ahead[1:]
        return bool(ahead) and ahead[0].token_type not in _QUERY_BEGINS

    def _with_window(self, source: exp.Expr | None) -> Any:
        """Return a source with the clause and the alias that may come after it."""
        if source is None or not self._at_window_clause():
            return source
        windowed = self.expression(WithWindow(this=source, clause=self._parse_window_brackets()))
        alias = self._parse_table_alias(alias_tokens=self.TABLE_ALIAS_TOKENS)
        if alias:
            windowed.set("alias", alias)
        return windowed

    def _lifted(self, sources: list[exp.Expr]) -> exp.Expr:
        """Return the union of sources; a clause or an alias after the last one is the union's."""
        last = sources[-1]
        clause = alias = None
        if isinstance(last, WithWindow):
            clause, alias = last.args["clause"], last.args.get("alias")
            last = last.this
        alias = alias or last.args.get("alias")
        last.set("alias", None)
        union = self.expression(SourceUnion(expressions=[*sources[:-1], last], alias=alias))
        if clause is None:
            return union
        union.set("alias", None)
        return self.expression(WithWindow(this=union, clause=clause, alias=alias))

    def _parse_placeholder(self) -> exp.Expr | None:
        token = self._curr
        found = super()._parse_placeholder()
        return self._spanned(found, token) if found is not None and token else found

    # ---- statements ------------------------------------------------------------------------

    def _parse_as_command(self, start: Token) -> exp.Command:
        what = self._tokens[self._index].text.upper() if self._index < len(self._tokens) else ""
        said = "a statement is a query, CREATE STREAM, CREATE VIEW, INSERT INTO or SET."
        hint = hint_at(what, ("STREAM", "VIEW"))
        self._raise_hinted(said + hint, hint, start)
        return exp.Command(this=start.text)

    def _parse_create_stream(self) -> exp.Expr | None:
        if not (self._curr and self._curr.text.upper() == "STREAM"):
            return None
        self._advance()
        name = self._parse_id_var()
        if name is None:
            self.raise_error("the stream's name is missing")
        columns = None
        if self._match(TokenType.L_PAREN, advance=False):
            columns = self._parse_wrapped_csv(self._parse_field_def)
        if not self._match(TokenType.FROM):
            self.raise_error("FROM 'format:path' is missing: where do the stream's rows come from?")
        location = self._parse_string()
        if location is None:
            self.raise_error("FROM takes a text such as 'parquet:folder'")
        clauses = []
        while self._curr and self._curr.token_type != TokenType.SEMICOLON:
            clauses.append(self._parse_stream_clause())
        return self.expression(
            CreateStream(this=name, columns=columns, location=location, clauses=clauses)
        )

    def _parse_stream_clause(self) -> StreamClause:
        token = self._curr
        for words in STREAM_CLAUSES:
            if self._match_text_seq(*words.split()):
                break
        else:
            if token.text.upper() in ("SELECT", "WITH", "CREATE", "INSERT"):
                self.raise_error("a ; is missing before this statement", token)
            known = ", ".join(STREAM_CLAUSES)
            two = f"{token.text} {self._next.text if self._next else ''}".upper()
            hint = hint_at(two, STREAM_CLAUSES) or hint_at(token.text.upper(), CLAUSE_BEGINS)
            said = f"unknown clause of a stream.{hint} Known: {known}"
            self._raise_hinted(said, hint, token)
        kind = STREAM_CLAUSES[words]
        clause = StreamClause(this=words)
        if kind == "length" or (kind == "targets" and not self._at_bracket_of_keys()):
            clause.set("length", self._parse_length())
        elif kind == "share":
            clause.set("share", self._parse_share())
        elif kind == "condition":
            clause.set("condition", self._parse_row_condition(words))
        elif kind != "nothing":
            clause.set("expressions", self._parse_listed(words, kind))
        return self._spanned(self.expression(clause), token)

    def _at_bracket_of_keys(self) -> bool:
        return bool(self._curr and self._curr.token_type == TokenType.L_PAREN)

    def _parse_row_condition(self, words: str) -> exp.Expr:
        token = self._curr
        found = self._parse_disjunction()
        if found is None:
            self.raise_error(f"{words} takes a condition, for example status = 'closed'", token)
            return exp.true()
        return found

    def _parse_listed(self, words: str, kind: str) -> list[exp.Expr]:
        """Parse what a clause lists: columns, a text, a word or pairs."""
        if kind == "columns":
            return self._parse_csv(self._parse_id_var)
        if kind == "key":
            return self._parse_update_key()
        if kind == "pairs":
            return self._parse_wrapped_csv(self._parse_option)
        if kind == "weights":
            return self._parse_wrapped_csv(self._parse_weight)
        if kind == "targets":
            return self._parse_wrapped_csv(self._parse_target)
        if kind == "words":
            return [self._parse_dashed(WORDS_OF[words])]
        text = kind == "text"
        found = self._parse_string() if text else self._parse_var(any_token=True)
        if found is None:
            example = "a text such as 'folder/'" if text else "a word such as MILLISECONDS"
            self.raise_error(f"{words} takes {example}")
        return [found] if found is not None else []

    def _parse_option(self) -> exp.Expr:
        """Parse ``name 'value'``; a name may have dots in it, and be quoted."""
        token = self._curr
        name = ""
        if self._match(TokenType.STRING):
            name = self._prev.text
        else:
            while self._curr and self._curr.token_type not in _AFTER_OPTION:
                name += self._curr.text
                self._advance()
        self._match(TokenType.EQ)
        value = self._parse_string()
        if not name or value is None:
            self.raise_error("an option is a name and a text, for example header 'true'", token)
        return self.expression(exp.EQ(this=exp.var(name), expression=value))

    def _parse_set_option(self) -> exp.Expr:
        """Parse ``SET MEMORY = '1 GB'`` or ``SET ADMISSION = REFUSE``, with = or TO between."""
        token = self._curr
        word = token.text.upper() if token else ""
        if not self._match_texts(SET_OPTIONS):
            hint = hint_at(word, SET_OPTIONS)
            self._raise_hinted(f"SET takes {' or '.join(SET_OPTIONS)}.{hint}", hint, token)
        if not self._match(TokenType.EQ) and not self._match_text_seq("TO"):
            self.raise_error(f"= is missing: SET {word} = {SET_OPTIONS[word]}")
        value = self._parse_string() or self._parse_length_or_word()
        option = self.expression(SetOption(this=exp.var(word), expression=value))
        return self._spanned(option, token)

    def _parse_length_or_word(self) -> exp.Expr:
        """Parse a number with a unit, a parameter, or a word."""
        if self._curr and self._curr.token_type == TokenType.VAR:
            return self._parse_word("WARN or REFUSE")
        return self._parse_length()

    def _parse_insert_into(self) -> exp.Expr | None:
        index = self._index
        if self._match(TokenType.INTO) and self._match(TokenType.STRING, advance=False):
            target = self._parse_string()
            query = self._parse_ddl_select() or self._parse_statement()
            if query is None:
                self.raise_error("a query is missing after INSERT INTO")
            return self.expression(InsertInto(this=target, expression=query))
        self._retreat(index)
        return None


WORDS_OF = {
    "SCHEDULE": "IN-PLACE, FIFO, LINECUTTING, RARE-FIRST or AUTO",
    "WINDOWS": "LAZY or EAGER",
}
SET_OPTIONS = {"MEMORY": "'1 GB'", "ADMISSION": "WARN"}
"""The options that SET takes, each with an example of its value."""
TABLE_FUNCTIONS = {"TUMBLE": ["range"], "HOP": ["slide", "range"], "SESSION": ["session"]}

_AFTER_OPTION = (TokenType.STRING, TokenType.EQ, TokenType.COMMA, TokenType.R_PAREN)
_QUERY_BEGINS = (TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN)


class Lowwater(Dialect):
    """The dialect of query texts, pipeline files and single expressions."""

    class Tokenizer(tokens.Tokenizer):
        """Reads the tokens of SQL, and the comparison signs as papers print them."""

        KEYWORDS: ClassVar = {
            **tokens.Tokenizer.KEYWORDS,
            "≥": TokenType.GTE,
            "≤": TokenType.LTE,
            "≠": TokenType.NEQ,
        }

    Parser = Parser
