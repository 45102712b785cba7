"""Every error a user of lowwater can meet, in one tree.

::

    LowwaterError
    ├── QueryError            the query is wrong; found before any row is read
    │   ├── ExpressionError   a piece of SQL text is wrong (knows line and column)
    │   └── OptionError       an option has a value it cannot have
    ├── StreamError           something went wrong while rows were flowing
    │   ├── BrokenPromise     a row (or a producer's mark) breaks a promise already made
    │   ├── BadInput          a row or chunk that cannot be read: wrong type, no time
    │   ├── OperatorError     an operator failed; names the operator and keeps the cause
    │   ├── CheckpointError   a checkpoint cannot be gone on from; says why
    │   └── StateError        rows that were put on disk cannot be had back
    └── SinkError             results could not be handed over

Every class survives pickling with its fields, because errors cross process borders.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class LowwaterError(Exception):
    """Base of all errors raised on purpose by this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(
    kind: type[LowwaterError], args: tuple[Any, ...], fields: dict[str, Any]
) -> LowwaterError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class QueryError(LowwaterError):
    """The query cannot be run as it is written."""


class ExpressionError(QueryError):
    """A piece of SQL text is wrong; underlines the place."""

    def __init__(self, message: str, text: str, line: int = 1, column: int = 1, length: int = 1):
        self.message, self.text, self.line, self.column = message, text, line, column
        self.length = length
        lines = text.split("\n")
        source = lines[min(line, len(lines)) - 1].rstrip("\r")
        pointer = " " * (column - 1) + "^" * max(1, length)
        super().__init__(f"{message}\n  at line {line}, column {column}:\n  {source}\n  {pointer}")


class OptionError(QueryError):
    """An option has a value it cannot have; the message says which values it can have."""


class StreamError(LowwaterError):
    """Something went wrong while rows were flowing."""


class BrokenPromise(StreamError):
    """A row or a producer's mark contradicts a promise that was already made."""

    def __init__(self, message: str, *, stream: str, channel: object, time: object, mark: object):
        self.stream, self.channel, self.time, self.mark = stream, channel, time, mark
        super().__init__(message)


class BadInput(StreamError):
    """A row or a chunk cannot be taken in: its type is wrong or it has no usable time."""


class OperatorError(StreamError):
    """An operator failed; the original error is the cause."""

    def __init__(self, operator: str, cause: BaseException):
        self.operator = operator
        said = " ".join(str(cause).split("\n\n")[0].split())  # advice to programmers follows
        super().__init__(f"{operator} failed: {type(cause).__name__}: {said}")


class CheckpointError(StreamError):
    """A run cannot go on from its checkpoint; the message says why and what can be done."""


class StateError(StreamError):
    """Rows that were put on disk cannot be had back, or cannot be put there; names the file."""


class SinkError(LowwaterError):
    """Results could not be handed over to where they should go."""


class StreamWarning(UserWarning):
    """Something about a stream that a person should look at; its rows were handled by rule."""


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """Say that ``name`` is unknown, what is known, and which known name is nearest."""
    names = sorted(known)
    alike = {each.lower(): each for each in names}
    near = get_close_matches(name.lower(), alike, n=1)
    hint = f" Did you mean {alike[near[0]]!r}?" if near else ""
    return f"unknown {what} {name!r}.{hint} Known: {', '.join(names) or '(none)'}."
