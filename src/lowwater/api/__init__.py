"""The fluent API is a thin, immutable facade over logical nodes; nothing runs before ``collect`` or
``run``."""

from lowwater.api.constructors import join, sql, stream
from lowwater.api.query import Grouped, Stream, Windowed

__all__ = ["Grouped", "Stream", "Windowed", "join", "sql", "stream"]
