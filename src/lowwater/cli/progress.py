"""The screen shows the progress of a pipeline as a table, as lines, or as lines of JSON."""

from __future__ import annotations

import time
from typing import Protocol

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from lowwater.cli.app import escape_line
from lowwater.cli.screen import Screen, json_line
from lowwater.metrics import CompletenessMetrics
from lowwater.metrics.values import UpdateMetrics
from lowwater.metrics.words import (
    holding_words,
    join_words,
    length,
    moment,
    percent,
    size,
    strategy_words,
    update_words,
)
from lowwater.pipeline.progress import PipelineProgress, QueryProgress, StreamProgress

DRAW_SECONDS = 0.25
LINE_SECONDS = 5.0
JSON_SECONDS = 1.0


class ProgressView(Protocol):
    """A form in which progress is shown."""

    every: float
    """Seconds between two calls of :meth:`show`."""

    def show(self, progress: PipelineProgress) -> None:
        """Show the progress of a pipeline that runs."""

    def finish(self, progress: PipelineProgress, outcome: str, error: str | None) -> None:
        """Show the last state; the outcome is "done", "stopped" or "failed"."""


class NoProgress:
    """Shows nothing."""

    every = JSON_SECONDS

    def show(self, progress: PipelineProgress) -> None:
        """Do nothing."""

    def finish(self, progress: PipelineProgress, outcome: str, error: str | None) -> None:
        """Do nothing."""


class ProgressLines:
    """Writes a line now and then, and a summary at the end."""

    every = LINE_SECONDS

    def __init__(self, screen: Screen):
        self._screen = screen
        self._rate = _InputRate()

    def show(self, progress: PipelineProgress) -> None:
        """Write a line."""
        self._screen.print_line(plain_line(progress, self._rate.of(progress)))

    def finish(self, progress: PipelineProgress, outcome: str, error: str | None) -> None:
        """Write the summary, in place of progress that is drawn."""
        for line in summary(progress, outcome):
            self._screen.print_line(line)


class ProgressTable(ProgressLines):
    """Draws a table on a terminal, and writes a summary at the end."""

    every = DRAW_SECONDS

    def __init__(self, screen: Screen, title: str):
        super().__init__(screen)
        self._title = title

    def show(self, progress: PipelineProgress) -> None:
        """Draw the table."""
        self._screen.draw(picture(progress, self._title, self._rate.of(progress)))


class ProgressJson:
    """Writes a line of JSON each second, and one at the end, between those of the rows."""

    every = JSON_SECONDS

    def __init__(self, screen: Screen):
        self._screen = screen

    def show(self, progress: PipelineProgress) -> None:
        """Write a line."""
        self._write({"event": "progress", **progress.as_json()})

    def finish(self, progress: PipelineProgress, outcome: str, error: str | None) -> None:
        """Write the last line."""
        failed = {"error": error} if error is not None else {}
        self._write({"event": outcome, **failed, **progress.as_json()})

    def _write(self, content: object) -> None:
        line = json_line(content)
        self._screen.print_rows(lambda console: console.file.write(line))


class _InputRate:
    """Measures the rows read in a second since the last call."""

    def __init__(self) -> None:
        self._rows, self._at = 0, time.monotonic()

    def of(self, progress: PipelineProgress) -> float:
        now = time.monotonic()
        rate = (progress.rows_in - self._rows) / max(now - self._at, 1e-3)
        self._rows, self._at = progress.rows_in, now
        return rate


# ---- words -------------------------------------------------------------------------------------


def picture(progress: PipelineProgress, title: str, rate: float) -> RenderableType:
    """Return the whole pipeline as a table that fits a terminal; ``rate`` is rows a second."""
    table = Table(box=None, pad_edge=False, show_edge=False, title=Text(), title_justify="left")
    table.title = Text.from_markup(
        f"[bold]{escape_line(title)}[/bold]  {length(progress.elapsed_seconds)},"
        f" {progress.rows_in:,} rows in ({rate:,.0f}/s), {_out(progress)}"
    )
    table.add_column("", overflow="ellipsis", no_wrap=True)
    learned = any(each.completeness for query in progress.queries for each in query.streams)
    for name in ("rows", "mark", "lag", "late", "state", *(["complete"] if learned else [])):
        table.add_column(name, justify="right", no_wrap=True, header_style="dim")
    for query in progress.queries:
        metrics = query.metrics
        state = f"{metrics.state_rows:,} rows, {size(metrics.state_bytes)}"
        name = escape_line(f"query {query.number} → {query.target}")
        style = "" if query.active else "dim"
        table.add_row(name, _out(query), "", "", f"{metrics.refused_rows:,}", state, style=style)
        for each in query.streams:
            table.add_row(
                escape_line(f"  {each.metrics.name}"),
                f"{each.metrics.rows:,} in",
                moment(each.mark),
                "" if each.lag_seconds is None else length(each.lag_seconds),
                f"{each.metrics.refused_rows:,}",
                "",
                *([_share(each.completeness)] if learned else []),
                style=style,
            )
        for fresh in query.updates:
            waits = f"{fresh.waiting:,} wait"
            table.add_row(
                escape_line(f"  {fresh.title}"), waits, "", _stale(fresh), "", "", style=style
            )
    return table


def _stale(updates: UpdateMetrics) -> str:
    """Return the staleness of an update stream, in seconds, for the column of lags."""
    return f"stale {updates.staleness_seconds:.3g} s"


def _share(found: CompletenessMetrics | None) -> str:
    """Return the completeness of a stream whose slack is learned; an empty text for others."""
    if found is None:
        return ""
    slack = "" if found.slack_seconds is None else f", slack {found.slack_seconds:.3g} s"
    return f"{percent(found.achieved)} of {percent(found.target)}{slack}"


def _out(progress: PipelineProgress | QueryProgress) -> str:
    """Return the numbers of rows that readers can see and of those that are in no file yet."""
    waiting = f" ({progress.rows_waiting:,} waiting in the sink)" if progress.rows_waiting else ""
    return f"{progress.rows_out:,} out{waiting}"


def plain_line(progress: PipelineProgress, rate: float) -> str:
    """Return the whole pipeline in one line; ``rate`` is rows a second."""
    state = sum(each.metrics.state_rows for each in progress.queries)
    held = sum(each.metrics.state_bytes for each in progress.queries)
    streams = {each.metrics.name: each for query in progress.queries for each in query.streams}
    marks = [_marked(each) for each in streams.values() if each.mark is not None]
    words = [
        f"{length(progress.elapsed_seconds)}: {progress.rows_in:,} rows in ({rate:,.0f}/s)",
        _out(progress),
        f"{progress.refused_rows:,} late",
        f"state {state:,} rows ({size(held)})",
    ]
    stale = [f"{u.title} {_stale(u)}" for query in progress.queries for u in query.updates]
    return escape_line("; ".join([", ".join(words), *marks, *stale]))


def _marked(stream: StreamProgress) -> str:
    lag = f" (lag {length(stream.lag_seconds)})" if stream.lag_seconds else ""
    complete = f", complete {_share(stream.completeness)}" if stream.completeness else ""
    return f"{stream.metrics.name} at {moment(stream.mark)}{lag}{complete}"


def summary(progress: PipelineProgress, outcome: str) -> list[str]:
    """Return a summary of a run, in lines; the outcome is "done", "stopped" or "failed"."""
    style = {"done": "green", "stopped": "yellow", "failed": "bold red"}[outcome]
    lines = [
        f"[{style}]{outcome}[/{style}] after {length(progress.elapsed_seconds)}:"
        f" {progress.rows_in:,} rows in, {_out(progress)},"
        f" {progress.refused_rows:,} late"
    ]
    many = len(progress.queries) > 1
    for query in progress.queries:
        if many or query.target != "console":
            rows = f"{query.rows_in:,} rows in, {_out(query)}"
            lines.append(escape_line(f"  query {query.number} → {query.target}: {rows}"))
        where = f" (query {query.number})" if many else ""
        lines += [escape_line(f"  {text}") for text in _sentences(query, where)]
    return lines


def _sentences(query: QueryProgress, where: str) -> list[str]:
    """Return the lines about the streams and operators of a query."""
    complete = (_complete(each, where) for each in query.streams)
    late = (_late(each, where) for each in query.streams if each.metrics.refused_rows)
    channels = (text for each in query.streams for text in _channels(each))
    return [
        *filter(None, complete),
        *late,
        *channels,
        *(
            text
            for words in (strategy_words, join_words, update_words)
            for each in query.metrics.operators
            if (text := words(each)) is not None
        ),
    ]


def _complete(stream: StreamProgress, where: str) -> str | None:
    """Return a line on the completeness, so far and expected, of a stream whose slack is learned;
    None for others."""
    found = stream.completeness
    if found is None:
        return None
    why = "" if found.shortfall is None else f"; {found.shortfall}"
    expected = f"{percent(found.expected)} expected"
    return f"{stream.metrics.name}{where}: complete {_share(found)}, {expected}{why}"


def _channels(stream: StreamProgress) -> list[str]:
    """Return lines on the channel that holds a stream back, and on stale channels."""
    name, stale = stream.metrics.name, stream.metrics.stale_channels
    holding = stream.metrics.holding
    words = [] if holding is None else [f"{name}: {holding_words(holding)}"]
    if stale:
        many = "1 stale channel does" if stale == 1 else f"{stale} stale channels do"
        words.append(f"{name}: {many} not hold the mark back (STALE AFTER)")
    return words


def _late(stream: StreamProgress, where: str) -> str:
    """Return a line on the rows of a stream that were refused, and on the folder of them."""
    found = stream.metrics
    words = []
    if found.late_rows:
        words.append(f"{found.late_rows:,} late by up to {found.longest_late_seconds:.3g} s")
    if found.refused_rows > found.late_rows:
        words.append(f"{found.refused_rows - found.late_rows:,} without a usable time or channel")
    kept = f"kept in {stream.late_to}" if stream.late_to else "not kept; LATE TO 'folder/' would"
    return f"{found.name}{where}: {' and '.join(words)}, {kept}"
