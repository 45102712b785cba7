"""Errors are carried from a worker to the user as text.

An error raised in a worker reaches the driver as text: a Python traceback inside a Java exception
inside an exception of PySpark. So a worker raises its errors *carried*: the message ends in a mark
that holds the error's class, message, notes and fields. The driver finds the mark in whatever text
arrives and builds the same error again. The mark is JSON, not a pickle, because rows of a stream
can end up in messages.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from typing import Any

from lowwater import errors
from lowwater.errors import LowwaterError, StreamError

_MARK = re.compile(r"<lowwater-error ([A-Za-z0-9+/=]+)>")
_TRACEBACK = "Traceback (most recent call last):"
_OURS = re.compile(r"lowwater\.errors\.(\w+)(?:: (.*))?", re.DOTALL)
_JVM_DETAIL = re.compile(r"\n\s*(?:=== Streaming Query|JVM stacktrace:|Driver stacktrace:|at \S)")
_SPARK_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*\] [^\n]*")
_SQLSTATE = re.compile(r"(?:\s*SQLSTATE: \w+)+\s*$")
_SPARKS_CLASS = re.compile(r"^pyspark\.errors\.[\w.]+: ")
_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


def carried(error: LowwaterError) -> RuntimeError:
    """Return the error as a worker raises it, so that :func:`translate` can build it again."""
    error = _marked(str(error)) or error
    content = {
        "kind": _kind(type(error)),
        "message": str(error),
        "fields": {name: _plain(value) for name, value in error.__dict__.items()},
    }
    mark = base64.b64encode(json.dumps(content).encode()).decode()
    return RuntimeError(f"{type(error).__name__}: {error}\n<lowwater-error {mark}>")


@contextmanager
def carrying() -> Iterator[None]:
    """Raise our errors in the form that :func:`carried` gives them."""
    try:
        yield
    except LowwaterError as error:
        raise carried(error) from error


def translate(error: BaseException) -> BaseException:
    """Return the error of ours that is in an error of Spark, else a short one with it as the cause.

    Raise it with a bare ``raise translate(error)``: its cause and context are set.
    """
    if isinstance(error, LowwaterError) or not isinstance(error, Exception):
        return error
    texts = [str(each) for each in _chain(error)]
    for text in texts:
        ours = _marked(text) or _named(text)
        if ours is not None:
            ours.__suppress_context__ = True
            return ours
    message = next(filter(None, map(_last_line, texts)), None) or _condition(texts[0])
    trouble = StreamError(message or type(error).__name__)
    missing = _MISSING_MODULE.match(message)
    if missing:
        trouble.add_note(
            f"the Python that runs Spark's workers has no {missing[1]}: set PYSPARK_PYTHON to one"
            " that has, before the session is made"
        )
    trouble.__cause__ = error
    return trouble


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or getattr(error, "_cause", None)


def _marked(text: str) -> LowwaterError | None:
    """Return the error in the last mark of a text, or in a mark within that one's message."""
    for mark in reversed(_MARK.findall(text)):
        try:
            content = json.loads(base64.b64decode(mark))
            kind, message, fields = content["kind"], content["message"], content["fields"]
        except (ValueError, LookupError, TypeError):
            continue
        inner = _marked(message)
        if inner is not None:
            return inner
        return _rebuilt(kind, message, {name: _value(each) for name, each in fields.items()})
    return None


def _named(text: str) -> LowwaterError | None:
    """Return an error of ours that was raised without being carried, by its class and message."""
    match = _OURS.match(_raised(text))
    return _rebuilt(match[1], match[2] or "", {}) if match else None


def _raised(text: str) -> str:
    """Return the class and message of the exception that the last traceback in a text is of."""
    _, found, after = text.rpartition(_TRACEBACK)
    if not found:
        return ""
    lines = after.split("\n")[1:]
    while lines and (not lines[0].strip() or lines[0][0].isspace()):
        del lines[0]
    return _SQLSTATE.sub("", _JVM_DETAIL.split("\n".join(lines), maxsplit=1)[0]).rstrip()


def _last_line(text: str) -> str:
    line = _SQLSTATE.sub("", _raised(text).partition("\n")[0])
    return _SPARKS_CLASS.sub("", line)


def _condition(text: str) -> str:
    """Return the innermost condition of Spark's own error with its message, else the first line."""
    message = _JVM_DETAIL.split(text, maxsplit=1)[0]
    conditions = _SPARK_CONDITION.findall(message)
    line: str = conditions[-1] if conditions else message.strip().partition("\n")[0]
    if line.startswith("[STREAM_FAILED]"):
        line = line.partition("terminated with exception: ")[2] or line
    return _SQLSTATE.sub("", line)


def _kind(kind: type[LowwaterError]) -> str:
    return next(each.__name__ for each in kind.__mro__ if each.__module__ == errors.__name__)


def _rebuilt(kind: str, message: str, fields: dict[str, Any]) -> LowwaterError:
    """Return an error of a class, made without calling its constructor."""
    named = getattr(errors, kind, None)
    if not (isinstance(named, type) and issubclass(named, LowwaterError)):
        named = StreamError
    error = named.__new__(named, message)
    error.__dict__.update(fields)
    return error


_READ: dict[str, Callable[[Any], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "seconds": lambda seconds: timedelta(seconds=seconds),
    "list": lambda items: [_value(item) for item in items],
    "tuple": lambda items: tuple(_value(item) for item in items),
}


def _plain(value: object) -> Any:
    """Return a field as JSON; a value of a type that is not listed here becomes text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, timedelta):
        return {"seconds": value.total_seconds()}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_plain(item) for item in value]}
    return str(value)


def _value(plain: Any) -> Any:
    if isinstance(plain, dict):
        [(tag, content)] = plain.items()
        return _READ[tag](content)
    return plain
