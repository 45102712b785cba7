"""The fluent API is a thin, immutable facade over logical nodes; nothing runs before ``collect`` or
``run``."""

from lowwater.api.constructors import join, sql, stream
from lowwater.api.query import Grouped, Stream, Windowed
from lowwater.api.together import Runs, Together

__all__ = [
    "Grouped",
    "Runs",
    "Stream",
    "Together",
    "Windowed",
    "join",
    "sql",
    "stream",
]
