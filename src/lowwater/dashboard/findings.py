"""Findings are sentences about a run, such as which stream holds its mark back.

A query can promise no more than the stream that is furthest behind, and a stream no more than its
slowest channel. So a finding about a mark that is held back names a stream, a channel of it, and
the first operator that waits for the stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lowwater.dashboard.observation import Observation
from lowwater.errors import message_of
from lowwater.joins.oblivious.estimates import GIVEN_UP, LATE_ROWS
from lowwater.metrics import OperatorMetrics, StreamMetrics
from lowwater.metrics.words import join_words, length, moment, strategy_words, update_words
from lowwater.plan.physical.operator import Operator
from lowwater.progress.late import LATE

Level = Literal["ok", "warn", "bad"]
NEAR = 1.0
"""Streams whose marks are at most this many seconds apart keep step."""
FAR = 60.0
"""A stream more than this many seconds behind the others is a warning."""
SILENT = 10.0
"""A channel that holds others back and has sent nothing for this many seconds is stalled."""
MANY_LATE = 0.001
"""A larger share of late rows is a warning."""


@dataclass(frozen=True)
class Finding:
    """A sentence about a run, with its urgency."""

    level: Level
    text: str


@dataclass(frozen=True)
class Holder:
    """The stream that holds the mark of a query back."""

    stream: str
    waiting: Operator
    """The first operator that waits for it."""
    path: frozenset[str]
    """The operators from the stream to that one, by name."""


def holder(seen: Observation) -> Holder | None:
    """Return the stream furthest behind among those with promises that have not ended; None
    if all of them, and their channels, keep step."""
    names = [name for name in seen.streams if _promising(seen, name)]
    if not names:
        return None
    behind = min(names, key=lambda name: (seen.mark_of(name) is not None, _at(seen, name)))
    if _newest(seen, behind) - _at(seen, behind) <= NEAR:
        return None
    plan = seen.query.plan
    path = {behind}
    at = next(each.index for each in plan.sources if seen.query.node(each.index) == behind)
    while (after := plan.consumers(at)) and not _waits(plan.operators[at]):
        at = after[0][0]
        path.add(seen.query.node(at))
    return Holder(behind, plan.operators[at], frozenset(path))


def _promising(seen: Observation, name: str) -> bool:
    spec = seen.query.specs[name]
    return spec.stamp != "latent" and spec.promises(spec.time) and not seen.streams[name].ended


def _at(seen: Observation, name: str) -> float:
    """Return the mark of a stream in seconds; negative infinity before its first promise."""
    mark = seen.mark_of(name)
    return float("-inf") if mark is None else mark


def _waits(operator: Operator) -> bool:
    return operator.traits.stateful or len(operator.inputs) > 1


# ---- sentences ---------------------------------------------------------------------------------


def findings(seen: Observation, show_rows: bool = True) -> list[Finding]:
    """Return the sentences about a run, the most urgent first; they have values of rows only with
    ``show_rows``."""
    error = seen.query.run.exception
    sentences = (
        [] if error is None else [Finding("bad", f"It failed: {message_of(error, show_rows)}")]
    )
    if seen.query.run.active:
        sentences += _progress(seen)
    sentences += _late(seen)
    for each in seen.metrics.operators:
        sentences += _of_operator(each)
    rank = {"bad": 0, "warn": 1, "ok": 2}
    return sorted(sentences, key=lambda each: rank[each.level])


def _of_operator(metrics: OperatorMetrics) -> list[Finding]:
    """Return the sentences about a join without a window, an update stream or a strategy."""
    lost = metrics.readings.get(LATE_ROWS) or metrics.readings.get(GIVEN_UP)
    found: list[tuple[Level, str | None]] = [
        ("warn" if lost else "ok", join_words(metrics)),
        ("ok", update_words(metrics)),
        ("ok", strategy_words(metrics)),
    ]
    return [Finding(level, text) for level, text in found if text is not None]


def _progress(seen: Observation) -> list[Finding]:
    """Return a sentence about the stream that operators wait for, or about the lag of all."""
    found = holder(seen)
    if found is None:
        lags = [each for name in seen.streams if (each := seen.lag_of(name)) is not None]
        if not lags:
            return []
        if len(seen.streams) == 1:
            return [Finding("ok", f"Its stream is {length(max(lags))} behind.")]
        return [Finding("ok", f"All streams keep step; the last is {length(max(lags))} behind.")]
    stream = seen.streams[found.stream]
    silent = "" if stream.rows else ", which has sent no row yet"
    who = f"{found.waiting.title} waits for {found.stream}"
    mark = seen.mark_of(found.stream)
    if mark is None:
        why = silent or ", which has made no promise yet"
        return [Finding("warn", f"{who}{why}.{_channel(seen, stream)}")]
    behind = max(0.0, _newest(seen, found.stream) - mark)
    text = f"{who}: its mark, {moment(seen.shown_mark(found.stream))}, is {length(behind)} behind"
    text += f" {_ahead_of(seen, found.stream)}.{_channel(seen, stream)}"
    if behind > FAR or _stalled(seen, stream):
        return [Finding("warn", text + _hint(seen, stream))]
    return [Finding("ok", text)]


def _stalled(seen: Observation, stream: StreamMetrics) -> bool:
    """Return True if a silent channel holds the stream back and the stream has no ``idle=``."""
    holding = [each for each in stream.channels if not each.stale]
    silent = holding[0].silent_seconds if len(holding) > 1 else None
    return silent is not None and silent > SILENT and not seen.query.specs[stream.name].idle


def _newest(seen: Observation, behind: str) -> float:
    """Return the mark furthest ahead, in seconds, of other streams and of channels of this one."""
    others = [_at(seen, name) for name in seen.streams if name != behind]
    ahead = seen.at(behind, seen.streams[behind].ahead)
    return max([*others, *([ahead] if ahead is not None else []), _at(seen, behind)])


def _ahead_of(seen: Observation, behind: str) -> str:
    """Return the name of the stream that is furthest ahead, or words for a channel of this one."""
    others = {name: _at(seen, name) for name in seen.streams if name != behind}
    first = max(others, key=lambda name: others[name], default=None)
    own = seen.at(behind, seen.streams[behind].ahead)
    if first is None or (own is not None and own >= others[first]):
        return "its channel furthest ahead"
    return first


def _channel(seen: Observation, stream: StreamMetrics) -> str:
    """Return a sentence about the channel that holds the stream back; empty for one channel."""
    holding = [each for each in stream.channels if not each.stale]
    if len(holding) < 2:
        return ""
    slowest, following = holding[0], holding[1]
    text = f" Of its {stream.channel_count:,} channels, {name_of(slowest.channel)} holds it back"
    mine, other = seen.at(stream.name, slowest.mark), seen.at(stream.name, following.mark)
    if mine is None:
        text += ", which has made no promise yet"
    elif other is not None and other - mine > NEAR:
        text += f", {length(other - mine)} behind the next one"
    if slowest.silent_seconds is not None and slowest.silent_seconds > NEAR:
        text += f"; it has sent nothing for {length(slowest.silent_seconds)}"
    return text + "."


def _hint(seen: Observation, stream: StreamMetrics) -> str:
    """Return sentences about options by which operators would no longer wait for the stream."""
    spec = seen.query.specs[stream.name]
    text = ""
    if spec.idle is None:
        text += " If it is silent, idle=lw.on_demand() (IDLE ON DEMAND) would let the others go on."
    if len(stream.channels) > 1 and spec.channel and spec.stale_after is None:
        text += (
            " If its clock is far behind, stale_after='1 hour' (STALE AFTER 1 HOUR) would set it"
            " aside."
        )
    return text


def _late(seen: Observation) -> list[Finding]:
    sentences = []
    for stream in seen.metrics.streams:
        rows = stream.late_rows
        if rows:
            late = [line for line in stream.late if line.reason == LATE]
            most = max(late, key=lambda line: line.rows)  # named if it is more than half of them
            longest = length(stream.longest_late_seconds)
            text = f"{stream.name}: {_rows(rows)} late, by up to {longest}"
            if most.channel is not None and 2 * most.rows > rows:
                text += f"; most, {most.rows:,}, of channel {name_of(most.channel)}"
            share = rows / max(stream.rows, rows)
            sentences.append(Finding("warn" if share > MANY_LATE else "ok", text + "."))
        for line in stream.late:
            if line.reason != LATE:
                sentences.append(
                    Finding("warn", f"{stream.name}: {_rows(line.rows)} refused: {line.reason}.")
                )
    return sentences


def _rows(count: int) -> str:
    return "1 row was" if count == 1 else f"{count:,} rows were"


def name_of(channel: object) -> str:
    """Return a channel, or a group of several columns, as text."""
    return ", ".join(map(str, channel)) if isinstance(channel, tuple) else str(channel)
