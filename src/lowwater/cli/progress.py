"""How a pipeline gets on, for people and programs: a drawing, plain lines, lines of JSON."""

from __future__ import annotations

import time
from typing import Protocol

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from lowwater.cli.rows import json_line
from lowwater.cli.screen import Screen
from lowwater.cli.text import escape_line
from lowwater.metrics import CompletenessMetrics
from lowwater.metrics.spelling import length, moment, percent, size
from lowwater.metrics.telling import UpdateProgress
from lowwater.pipeline.progress import PipelineProgress, QueryProgress, StreamProgress

DRAW_SECONDS = 0.25
SAY_SECONDS = 5.0
TELL_SECONDS = 1.0


class Teller(Protocol):
    """Tells how a pipeline gets on."""

    every: float
    """Seconds between two tellings."""

    def tell(self, progress: PipelineProgress) -> None:
        """How far it is."""

    def end(self, progress: PipelineProgress, how: str, error: str | None) -> None:
        """How it ended: "done", "stopped" or "failed"."""


class Silent:
    """Tells nothing."""

    every = TELL_SECONDS

    def tell(self, progress: PipelineProgress) -> None:
        """Nothing."""

    def end(self, progress: PipelineProgress, how: str, error: str | None) -> None:
        """Nothing."""


class Drawn:
    """Draws progress on a terminal, and writes a summary at the end."""

    every = DRAW_SECONDS

    def __init__(self, screen: Screen, title: str):
        self._screen, self._title = screen, title
        self._rate = _Rate()

    def tell(self, progress: PipelineProgress) -> None:
        """Draw."""
        self._screen.draw(picture(progress, self._title, self._rate.of(progress)))

    def end(self, progress: PipelineProgress, how: str, error: str | None) -> None:
        """Write what was done."""
        self._screen.close()
        for line in summary(progress, how):
            self._screen.say(line)


class Said:
    """Writes a line now and then, and a summary at the end."""

    every = SAY_SECONDS

    def __init__(self, screen: Screen):
        self._screen = screen
        self._rate = _Rate()

    def tell(self, progress: PipelineProgress) -> None:
        """Write a line."""
        self._screen.say(plain_line(progress, self._rate.of(progress)))

    def end(self, progress: PipelineProgress, how: str, error: str | None) -> None:
        """Write what was done."""
        for line in summary(progress, how):
            self._screen.say(line)


class Json:
    """Writes a line of JSON each second, and one at the end, among those of the rows."""

    every = TELL_SECONDS

    def __init__(self, screen: Screen):
        self._screen = screen

    def tell(self, progress: PipelineProgress) -> None:
        """Write a line."""
        self._write({"event": "progress", **progress.as_json()})

    def end(self, progress: PipelineProgress, how: str, error: str | None) -> None:
        """Write the last line."""
        failed = {"error": error} if error is not None else {}
        self._write({"event": how, **failed, **progress.as_json()})

    def _write(self, content: object) -> None:
        line = json_line(content)
        self._screen.print_rows(lambda console: console.file.write(line))


class _Rate:
    """Rows a second since the last look."""

    def __init__(self) -> None:
        self._rows, self._at = 0, time.monotonic()

    def of(self, progress: PipelineProgress) -> float:
        now = time.monotonic()
        rate = (progress.rows_in - self._rows) / max(now - self._at, 1e-3)
        self._rows, self._at = progress.rows_in, now
        return rate


# ---- words -------------------------------------------------------------------------------------


def picture(progress: PipelineProgress, title: str, rate: float) -> RenderableType:
    """The whole pipeline as a table that fits a terminal."""
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
        late = sum(each.refused_rows for each in query.streams)
        state = f"{query.state_rows:,} rows, {size(query.state_bytes)}"
        name = escape_line(f"query {query.number} → {query.target}")
        style = "" if query.active else "dim"
        table.add_row(name, _out(query), "", "", f"{late:,}", state, style=style)
        for each in query.streams:
            table.add_row(
                escape_line(f"  {each.name}"),
                f"{each.rows:,} in",
                moment(each.mark),
                "" if each.lag_seconds is None else length(each.lag_seconds),
                f"{each.refused_rows:,}",
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


def _stale(updates: UpdateProgress) -> str:
    """How stale what an update stream shows is; it stands where lags do."""
    return f"stale {updates.staleness_seconds:.3g} s"


def _share(found: CompletenessMetrics | None) -> str:
    """How complete a stream is whose promise is learned; nothing for others."""
    if found is None:
        return ""
    slack = "" if found.slack_seconds is None else f", slack {found.slack_seconds:.3g} s"
    return f"{percent(found.achieved)} of {percent(found.target)}{slack}"


def _out(progress: PipelineProgress | QueryProgress) -> str:
    """Rows that readers can see, and those whose file is not written yet."""
    waiting = f" ({progress.rows_waiting:,} waiting in the sink)" if progress.rows_waiting else ""
    return f"{progress.rows_out:,} out{waiting}"


def plain_line(progress: PipelineProgress, rate: float) -> str:
    """Everything in one line."""
    state = sum(each.state_rows for each in progress.queries)
    held = sum(each.state_bytes for each in progress.queries)
    streams = {each.name: each for query in progress.queries for each in query.streams}
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
    return f"{stream.name} at {moment(stream.mark)}{lag}{complete}"


def summary(progress: PipelineProgress, how: str) -> list[str]:
    """What was done, in a few lines."""
    style = {"done": "green", "stopped": "yellow", "failed": "bold red"}[how]
    lines = [
        f"[{style}]{how}[/{style}] after {length(progress.elapsed_seconds)}:"
        f" {progress.rows_in:,} rows in, {_out(progress)},"
        f" {progress.refused_rows:,} late"
    ]
    many = len(progress.queries) > 1
    for query in progress.queries:
        if many or query.target != "console":
            rows = f"{query.rows_in:,} rows in, {_out(query)}"
            lines.append(escape_line(f"  query {query.number} → {query.target}: {rows}"))
        lines += [
            escape_line(f"  {_complete(each, query, many)}")
            for each in query.streams
            if each.completeness is not None
        ]
        lines += [
            escape_line(f"  {_late(each, query, many)}")
            for each in query.streams
            if each.refused_rows
        ]
        lines += [escape_line(f"  {text}") for each in query.streams for text in _channels(each)]
        lines += [escape_line(f"  {each}") for each in query.choices]
        lines += [escape_line(f"  {each.words}") for each in query.joins]
        lines += [escape_line(f"  {each.words}") for each in query.updates]
    return lines


def _complete(stream: StreamProgress, query: QueryProgress, many: bool) -> str:
    """How complete a stream was whose promise was learned, and how complete it would go on."""
    where = f" (query {query.number})" if many else ""
    assert stream.completeness is not None
    expected = percent(stream.completeness.expected)
    short = stream.completeness.shortfall
    why = "" if short is None else f"; {short}"
    return f"{stream.name}{where}: complete {_share(stream.completeness)}, {expected} expected{why}"


def _channels(stream: StreamProgress) -> list[str]:
    """Which channel holds a stream back, and how many are set aside."""
    words = [f"{stream.name}: {stream.holding}"] if stream.holding else []
    if stream.stale_channels:
        many = (
            "1 channel is"
            if stream.stale_channels == 1
            else f"{stream.stale_channels} channels are"
        )
        words.append(f"{stream.name}: {many} set aside (STALE AFTER)")
    return words


def _late(stream: StreamProgress, query: QueryProgress, many: bool) -> str:
    """What became of the rows of a stream that were not let in."""
    where = f" (query {query.number})" if many else ""
    words = [f"{stream.late_rows:,} late"] if stream.late_rows else []
    if stream.late_rows:
        words[0] += f" by up to {stream.latest_seconds:.3g} s"
    if stream.refused_rows > stream.late_rows:
        words.append(f"{stream.refused_rows - stream.late_rows:,} without a usable time or channel")
    kept = f"kept in {stream.late_to}" if stream.late_to else "not kept; LATE TO 'folder/' would"
    return f"{stream.name}{where}: {' and '.join(words)}, {kept}"
