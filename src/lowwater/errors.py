"""All errors that lowwater raises on purpose form one tree.

::

    LowwaterError
    ├── QueryError            the query is wrong; found before any row is read
    │   ├── ExpressionError   a piece of SQL text is wrong (knows line and column)
    │   └── OptionError       an option has a value it cannot have
    ├── StreamError           something went wrong while rows were flowing
    │   ├── BrokenPromise     a row (or a producer's mark) breaks a promise already made
    │   ├── BadInput          a row or chunk that cannot be read: wrong type, no time
    │   ├── OperatorError     an operator failed; names the operator and keeps the cause
    │   ├── CheckpointError   a run cannot continue from its checkpoint; says why
    │   └── StateError        rows that were written to disk cannot be read back
    ├── AdmissionError        the memory budget cannot serve a query at its accuracy
    └── SinkError             results could not be handed over

Every class survives pickling with its fields, because errors cross process borders.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

HIDDEN = "the terminal has the message, and this page with --show-rows"
"""Ends a message that was shortened because it may hold values of rows."""


class LowwaterError(Exception):
    """Base of all errors raised on purpose by this package."""

    @property
    def without_rows(self) -> str:
        """The message without values of rows, for places where rows must not be shown."""
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(
    kind: type[LowwaterError], args: tuple[Any, ...], fields: dict[str, Any]
) -> LowwaterError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a message with two spellings: that of the fluent API, and that of a query text.

    ``Term("schedule=", "SCHEDULE")`` is an option and the clause for it.
    """

    fluent: str
    clause: str

    def __str__(self) -> str:
        return self.fluent

    def given(self, value: object) -> Term:
        """Return the option with its value, as the API and as a query text write it."""
        return Term(f"{self.fluent}{value!r}", f"{self.clause} {value}")


class QueryError(LowwaterError):
    """The query cannot be run as it is written.

    The message is the concatenation of the parts. ``about`` is the option or clause that the error
    is about: the one given, else the first part if that is a term, else None.
    """

    def __init__(self, *parts: str | Term, about: Term | None = None):
        first = parts[0] if parts else None
        self.about = about or (first if isinstance(first, Term) else None)
        self.parts = parts
        super().__init__("".join(map(str, parts)))

    @property
    def in_clauses(self) -> str:
        """The message in the words of a query text."""
        return "".join(each.clause if isinstance(each, Term) else each for each in self.parts)


class ExpressionError(QueryError):
    """A piece of SQL text is wrong; the message ends with the line, underlined at the place.

    ``message`` is the message alone, made of one part or several. ``line`` and ``column`` count
    from 1, ``length`` is the number of characters underlined.
    """

    def __init__(
        self,
        message: str | Sequence[str | Term],
        text: str,
        line: int = 1,
        column: int = 1,
        length: int = 1,
        *,
        about: Term | None = None,
    ):
        super().__init__(*((message,) if isinstance(message, str) else message), about=about)
        self.message, self.text, self.line, self.column = str(self), text, line, column
        self.length = length
        lines = text.split("\n")
        source = lines[min(line, len(lines)) - 1].rstrip("\r")
        pointer = " " * (column - 1) + "^" * max(1, length)
        place = f"\n  at line {line}, column {column}:\n  {source}\n  {pointer}"
        self.args = (self.message + place,)

    def with_parts(self, *parts: str | Term) -> ExpressionError:
        """Return an error at the same place whose message has these parts; ``*self.parts`` can be
        among them. It is about the same option or clause."""
        about = self.about or next((each for each in parts[:1] if isinstance(each, Term)), None)
        return ExpressionError(parts, self.text, self.line, self.column, self.length, about=about)


class OptionError(QueryError):
    """An option has a wrong value; the message lists the values that it can have."""


class StreamError(LowwaterError):
    """Something went wrong while rows were flowing."""

    @property
    def without_rows(self) -> str:
        """The kind of error; a message about rows may hold their values."""
        return f"{type(self).__name__}; {HIDDEN}"


class BrokenPromise(StreamError):
    """A row or a producer's mark contradicts a promise that was already made."""

    def __init__(self, message: str, *, stream: str, channel: object, time: object, mark: object):
        self.stream, self.channel, self.time, self.mark = stream, channel, time, mark
        super().__init__(message)

    @property
    def without_rows(self) -> str:
        """The stream whose promise was broken."""
        return f"a row or mark of stream {self.stream!r} broke a promise; {HIDDEN}"


class BadInput(StreamError):
    """A row or a chunk cannot be taken in: its type is wrong or it has no usable time."""


class OperatorError(StreamError):
    """An operator failed; the original error is the cause."""

    def __init__(self, operator: str, cause: BaseException):
        self.operator, self.cause = operator, type(cause).__name__
        said = " ".join(str(cause).split("\n\n")[0].split())  # advice to programmers follows
        super().__init__(f"{operator} failed: {self.cause}: {said}")

    @property
    def without_rows(self) -> str:
        """The operator and the class of its error."""
        return f"{self.operator} failed: {self.cause}; {HIDDEN}"


class CheckpointError(StreamError):
    """A run cannot continue from its checkpoint; the message says why and what can be done."""

    @property
    def without_rows(self) -> str:
        """The message: it is about files and plans, not rows."""
        return str(self)


class StateError(StreamError):
    """Rows cannot be written to disk or read back; names the file."""


class AdmissionError(LowwaterError):
    """A query needs more memory than the budget has left; says how much, and what to do."""


class SinkError(LowwaterError):
    """Results could not be handed over to where they should go."""

    @property
    def without_rows(self) -> str:
        """The kind of error; a sink's own message may hold values of rows."""
        return f"results could not be written; {HIDDEN}"


class StreamWarning(UserWarning):
    """A fact about a stream that a person should look at; its rows were handled as declared."""


def message_of(error: BaseException, rows: bool) -> str:
    """Return the message of an error; without values of rows unless ``rows``."""
    if rows:
        return str(error)
    if isinstance(error, LowwaterError):
        return error.without_rows
    return f"{type(error).__name__}; {HIDDEN}"


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """Return a message that ``name`` is unknown, with the known names and the nearest of them."""
    names = sorted(known)
    alike = {each.lower(): each for each in names}
    near = get_close_matches(name.lower(), alike, n=1)
    hint = f" Did you mean {alike[near[0]]!r}?" if near else ""
    return f"unknown {what} {name!r}.{hint} Known: {', '.join(names) or '(none)'}."
