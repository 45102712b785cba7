"""Who holds the mark back, and other things worth knowing of a run, in words.

A query can promise no more than the stream that is furthest behind, and a stream no more than its
slowest channel; so the answer is a stream, a channel of it, and the first operator that waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lowwater.dashboard.watched import Looked
from lowwater.errors import message_of
from lowwater.metrics import StreamMetrics
from lowwater.metrics.spelling import length, moment
from lowwater.metrics.telling import JoinProgress, UpdateProgress, choice
from lowwater.plan.physical.operator import Operator

Level = Literal["ok", "warn", "bad"]
NEAR = 1.0
"""Seconds by which streams may be apart and still keep step."""
FAR = 60.0
"""Seconds behind the others from which on somebody should look."""
SILENT = 10.0
"""Seconds after which a channel that sends nothing, and holds others back, counts as stalled."""
MANY_LATE = 0.001
"""A share of late rows that calls for another promise."""


@dataclass(frozen=True)
class Said:
    """A sentence, and how much it matters."""

    level: Level
    text: str


@dataclass(frozen=True)
class Holder:
    """The stream that holds the mark of a query back."""

    stream: str
    waiting: Operator
    """The first operator that waits for it."""
    path: frozenset[str]
    """From the stream to that operator, by name."""


def holder(looked: Looked) -> Holder | None:
    """The stream furthest behind of those that go on and promise something; None if all of them,
    and their channels, keep step."""
    names = [name for name in looked.streams if _promising(looked, name)]
    if not names:
        return None
    behind = min(names, key=lambda name: (looked.mark_of(name) is not None, _at(looked, name)))
    if _newest(looked, behind) - _at(looked, behind) <= NEAR:
        return None
    plan = looked.watched.plan
    path = {behind}
    at = next(each.index for each in plan.sources if looked.watched.node(each.index) == behind)
    while (after := plan.consumers(at)) and not _waits(plan.operators[at]):
        at = after[0][0]
        path.add(looked.watched.node(at))
    return Holder(behind, plan.operators[at], frozenset(path))


def _promising(looked: Looked, name: str) -> bool:
    spec = looked.watched.specs[name]
    return spec.stamp != "latent" and spec.promises(spec.time) and not looked.streams[name].ended


def _at(looked: Looked, name: str) -> float:
    """A mark that can be compared; none is before all others."""
    mark = looked.mark_of(name)
    return float("-inf") if mark is None else mark


def _waits(operator: Operator) -> bool:
    return operator.traits.stateful or len(operator.inputs) > 1


# ---- sentences ---------------------------------------------------------------------------------


def words(looked: Looked, show_rows: bool = True) -> list[Said]:
    """What to know of a run, the most pressing first; values of rows only if ``show_rows``."""
    error = looked.watched.run.exception
    said = [] if error is None else [Said("bad", f"It failed: {message_of(error, show_rows)}")]
    if looked.watched.run.active:
        said += _progress(looked)
    said += _late(looked)
    for each in looked.metrics.operators:
        join, queue, chosen = JoinProgress.of(each), UpdateProgress.of(each), choice(each)
        if join is not None:
            said.append(Said("warn" if join.late_rows or join.given_up_rows else "ok", join.words))
        if queue is not None:
            said.append(Said("ok", queue.words))
        if chosen is not None:
            said.append(Said("ok", chosen))
    rank = {"bad": 0, "warn": 1, "ok": 2}
    return sorted(said, key=lambda each: rank[each.level])


def _progress(looked: Looked) -> list[Said]:
    """Who is waited for."""
    found = holder(looked)
    if found is None:
        lags = [each for name in looked.streams if (each := looked.lag_of(name)) is not None]
        if not lags:
            return []
        if len(looked.streams) == 1:
            return [Said("ok", f"Its stream is {length(max(lags))} behind.")]
        return [Said("ok", f"All streams keep step; the last is {length(max(lags))} behind.")]
    stream = looked.streams[found.stream]
    silent = "" if stream.rows else ", which has sent no row yet"
    who = f"{found.waiting.title} waits for {found.stream}"
    mark = looked.mark_of(found.stream)
    if mark is None:
        why = silent or ", which has made no promise yet"
        return [Said("warn", f"{who}{why}.{_channel(looked, stream)}")]
    behind = max(0.0, _newest(looked, found.stream) - mark)
    text = f"{who}: its mark, {moment(looked.shown_mark(found.stream))}, is {length(behind)} behind"
    text += f" {_ahead_of(looked, found.stream)}.{_channel(looked, stream)}"
    if behind > FAR or _stalled(looked, stream):
        return [Said("warn", text + _hint(looked, stream))]
    return [Said("ok", text)]


def _stalled(looked: Looked, stream: StreamMetrics) -> bool:
    """Whether a channel that has fallen silent holds everything back, and nothing will free it."""
    holding = [each for each in stream.channels if not each.stale]
    silent = holding[0].silent_seconds if len(holding) > 1 else None
    return silent is not None and silent > SILENT and not looked.watched.specs[stream.name].idle


def _newest(looked: Looked, behind: str) -> float:
    """The mark furthest ahead, of other streams and of channels of the same one."""
    others = [_at(looked, name) for name in looked.streams if name != behind]
    ahead = looked.at(behind, looked.streams[behind].ahead)
    return max([*others, *([ahead] if ahead is not None else []), _at(looked, behind)])


def _ahead_of(looked: Looked, behind: str) -> str:
    """Who is furthest ahead."""
    others = {name: _at(looked, name) for name in looked.streams if name != behind}
    first = max(others, key=lambda name: others[name], default=None)
    own = looked.at(behind, looked.streams[behind].ahead)
    if first is None or (own is not None and own >= others[first]):
        return "its channel furthest ahead"
    return first


def _channel(looked: Looked, stream: StreamMetrics) -> str:
    """Which channel of the stream it is."""
    holding = [each for each in stream.channels if not each.stale]
    if len(holding) < 2:
        return ""
    slowest, following = holding[0], holding[1]
    text = f" Of its {stream.channel_count:,} channels, {name_of(slowest.channel)} holds it back"
    mine, other = looked.at(stream.name, slowest.mark), looked.at(stream.name, following.mark)
    if mine is None:
        text += ", which has made no promise yet"
    elif other is not None and other - mine > NEAR:
        text += f", {length(other - mine)} behind the next one"
    if slowest.silent_seconds is not None and slowest.silent_seconds > NEAR:
        text += f"; it has sent nothing for {length(slowest.silent_seconds)}"
    return text + "."


def _hint(looked: Looked, stream: StreamMetrics) -> str:
    """What would help where nothing tells that time passes."""
    spec = looked.watched.specs[stream.name]
    text = ""
    if spec.idle is None:
        text += " If it is silent, idle=lw.on_demand() (IDLE ON DEMAND) would let the others go on."
    if len(stream.channels) > 1 and spec.channel and spec.stale_after is None:
        text += (
            " If its clock is far behind, stale_after='1 hour' (STALE AFTER 1 HOUR) would set it"
            " aside."
        )
    return text


def _late(looked: Looked) -> list[Said]:
    said = []
    for stream in looked.metrics.streams:
        late = [line for line in stream.late if line.reason == "late"]
        rows = sum(line.rows for line in late)
        if rows:
            most = max(late, key=lambda line: line.rows)  # named if it is more than half of them
            longest = max(line.longest_seconds for line in late)
            text = f"{stream.name}: {_rows(rows)} late, by up to {length(longest)}"
            if most.channel is not None and 2 * most.rows > rows:
                text += f"; most, {most.rows:,}, of channel {name_of(most.channel)}"
            share = rows / max(stream.rows, rows)
            said.append(Said("warn" if share > MANY_LATE else "ok", text + "."))
        for line in stream.late:
            if line.reason != "late":
                said.append(
                    Said("warn", f"{stream.name}: {_rows(line.rows)} refused: {line.reason}.")
                )
    return said


def _rows(count: int) -> str:
    return "1 row was" if count == 1 else f"{count:,} rows were"


def name_of(channel: object) -> str:
    """A channel, or a group of several columns, as text."""
    return ", ".join(map(str, channel)) if isinstance(channel, tuple) else str(channel)
