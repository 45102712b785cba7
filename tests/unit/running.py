"""Short ways to run a query in a test."""

from __future__ import annotations

from typing import Any

import lowwater as lw

LONG = 60.0
"""Seconds a test waits at most; nothing depends on how long it really takes."""


def finished(query: lw.Stream, **options: Any) -> lw.Run:
    """A run of a finite query, over."""
    run = query.run(**options)
    assert run.await_termination(LONG)
    return run


def rows(query: lw.Stream, **options: Any) -> list[dict[str, Any]]:
    """All rows a query gives, as they left."""
    return query.collect(**options).to_pylist()


def column(query: lw.Stream, name: str, **options: Any) -> list[Any]:
    """One column of all rows a query gives, as they left."""
    return query.collect(**options)[name].to_pylist()
