"""A declared stream is made from the clauses of CREATE STREAM: a source and its promises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lowwater import api
from lowwater.engines.run import external_columns
from lowwater.errors import OptionError, QueryError, Term, unknown_name
from lowwater.pipeline.location import Location, generated, host_and_port, read_location
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.sql.declarations import Declared
from lowwater.plan.sql.values import Span
from lowwater.progress.contract import Contract, Learned, Ordered, Punctuated, Within, WithinRows
from lowwater.progress.options import Heartbeat, Idle, OnDemand
from lowwater.sources.files import FORMATS, Files
from lowwater.sources.lines import Lines
from lowwater.sources.replay import Replay
from lowwater.sources.source import Source
from lowwater.sources.spark import SparkFormat
from lowwater.stream.duration import spell

KNOWN = (*FORMATS, "generate", "socket")
"""The formats that every engine reads."""


def clause(name: str) -> Term:
    """Return a clause as errors about it name it."""
    return Term(name, name)


def make_stream(declared: Declared, engine: str, session: Callable[[], Any]) -> api.Stream:
    """Return the stream that a pipeline file declares; ``session`` makes a Spark session if one is
    needed."""
    source = _source(declared, read_location(declared.location), engine, session)
    if len(declared.channel) > 1:
        raise QueryError(clause("PER CHANNEL"), " names one column; PER GROUP may name several")
    found = api.stream(
        source,
        name=declared.name,
        time=declared.time,
        unit=declared.unit,
        progress=_contract(declared),
        channel=declared.channel[0] if declared.channel else None,
        groups=declared.groups,
        idle=_idle(declared),
        stale_after=(
            None if declared.stale_after is None else _length(declared.stale_after, "STALE AFTER")
        ),
        ended=declared.ended,
    )
    if declared.updates is None:
        return found
    by, node = declared.updates, found.node
    return api.Stream(update_builders.updated(node, by, declared.deletes, node.origin))


def _contract(declared: Declared) -> Contract | dict[str, Contract]:
    within, column = declared.within, declared.punctuated or None
    _check_marks(declared)
    if declared.unpromised is not None:
        if within is not None or column is not None or declared.learned is not None:
            raise QueryError(
                clause("UNPROMISED"),
                " says that nothing is promised: leave it out, or the WITHIN, LEARNED or"
                " PUNCTUATED BY beside it",
            )
        return declared.unpromised
    if declared.learned is not None:
        if within is not None or column is not None:
            raise QueryError(
                clause("LEARNED"),
                " stands in the place of a promise: leave it out, or the WITHIN or PUNCTUATED BY"
                " beside it",
            )
        return Learned(declared.learned)
    if column is not None:
        if within is not None:
            said = "a stream is PUNCTUATED BY a column or WITHIN a length, not both"
            raise QueryError(said, about=clause("WITHIN"))
        times = declared.times or (str(declared.time),)
        marks = zip(times, column, strict=True)
        return {time: Punctuated(m, declared.alone, declared.jointly) for time, m in marks}
    if within is None:
        return Ordered()
    return WithinRows(within.rows) if within.rows is not None else Within(_length(within, "WITHIN"))


def _check_marks(declared: Declared) -> None:
    """Raise if there is not a mark for each time, or a clause about marks stands without them."""
    marks, times = len(declared.punctuated), len(declared.times) or 1
    if declared.alone is not None and not marks:
        raise QueryError(
            clause("ALONE BY"),
            " names the rows that are only a promise; add PUNCTUATED BY, the column of promises",
        )
    if declared.jointly and marks < 2:
        raise QueryError(
            clause("JOINTLY"),
            " is for the promises of two columns or more: PUNCTUATED BY mark, mark2 JOINTLY ON ts,"
            " ts2",
        )
    if marks != times and (marks or times > 1):
        about = "PUNCTUATED BY" if marks > 1 else "ON"
        raise QueryError(
            clause(about),
            " names one column, or as many as PUNCTUATED BY and ON each: PUNCTUATED BY mark, mark2"
            " JOINTLY ON ts, ts2",
        )


def _idle(declared: Declared) -> Idle | None:
    skew = _length(declared.skew, "WITHIN") if declared.skew is not None else 0
    limit = declared.behind_clock
    behind = _length(limit, "BEHIND CLOCK") if limit is not None else None
    if declared.heartbeat is not None:
        if declared.on_demand:
            said = "a stream is IDLE ON DEMAND or has a HEARTBEAT, not both"
            raise QueryError(said, about=clause("IDLE ON DEMAND"))
        return Heartbeat(_length(declared.heartbeat, "HEARTBEAT EVERY"), skew, behind)
    if declared.on_demand:
        return OnDemand(skew, behind)
    if behind is not None:
        raise QueryError(
            clause("BEHIND CLOCK"),
            " bounds the timestamps that are made for an idle stream: put IDLE ON DEMAND or"
            " HEARTBEAT EVERY before it",
        )
    return None


def _length(span: Span, name: str) -> str:
    if span.rows is not None:
        raise QueryError(clause(name), " takes a length of time here, not a number of rows")
    return spell(round(span.nanoseconds))


# ---- sources -----------------------------------------------------------------------------------


def _source(
    declared: Declared, location: Location, engine: str, session: Callable[[], Any]
) -> Source:
    kind = location.format.lower()
    if kind in FORMATS and not location.elsewhere:
        return _files(declared, kind, location.path)
    if kind == "generate":
        return _generated(declared, location.path)
    if kind == "socket":
        return _lines(declared, location.path)
    if engine == "spark":
        return _external(declared, location, session)
    if location.elsewhere:
        raise OptionError(f"{location.path} can only be read by Spark: use --engine spark")
    raise OptionError(
        f"{unknown_name('format', location.format, KNOWN)} Spark may know it: use --engine spark."
    )


def _files(declared: Declared, kind: str, path: str) -> Files:
    if not path:
        raise OptionError(f"say where the files are: '{kind}:folder'")
    return Files(kind, Path(path), declared.columns, declared.follow, declared.options)


def _generated(declared: Declared, path: str) -> Replay:
    _refuse(declared, "generate", follow=True, options=True)
    made = generated(path)
    if declared.columns is None:
        return made
    for name in declared.columns:
        if name not in made.schema:
            raise QueryError(unknown_name("column of generate:", name, made.schema))
    return made.only(declared.columns)


def _lines(declared: Declared, path: str) -> Lines:
    _refuse(declared, "socket", follow=True, options=True)
    if declared.columns is None:
        raise QueryError("lines of a socket do not name their columns: declare them")
    return Lines(*host_and_port(path), declared.columns)


def _external(declared: Declared, location: Location, session: Callable[[], Any]) -> SparkFormat:
    columns = declared.columns
    if columns is None:
        columns = external_columns(session(), location.format, location.path, declared.options)
    return SparkFormat(location.format, location.path, declared.options, columns, declared.follow)


def _refuse(declared: Declared, kind: str, *, follow: bool, options: bool) -> None:
    if follow and declared.follow:
        raise OptionError(clause("FOLLOW"), f" is for folders of files; {kind}: has none")
    if options and declared.options:
        raise OptionError(f"{kind}: takes no OPTIONS")
