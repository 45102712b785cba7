"""Declaring streams: from what a user says of a source to the node of a checked contract."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import count
from typing import Any, cast

from lowwater.errors import OptionError, QueryError
from lowwater.plan.nodes import SourceNode
from lowwater.progress.contract import Contract, Generation, Idle, Jump, Ordered
from lowwater.progress.spec import LatePolicy, Stamp, StreamSpec
from lowwater.sources.replay import replay
from lowwater.sources.source import Source
from lowwater.sources.spark import SparkFrame, is_dataframe
from lowwater.stream.duration import Duration

_names = count(1)


def declared(
    source: Any,
    *,
    name: str | None,
    time: str | None,
    progress: Contract | Mapping[str, Contract] | None,
    unit: str,
    stamp: Stamp,
    channel: str | None,
    channels: Sequence[Hashable],
    groups: str | Sequence[str] | None,
    idle: Idle | None,
    late: LatePolicy,
    jump: Jump | None,
    punctuate: Generation | None,
    stale_after: Duration | None,
    origin: str,
) -> SourceNode:
    """The node of a declared stream; the options are those of ``lw.stream``."""
    source = _source(source)
    name = name or f"stream{next(_names)}"
    if time is None:
        raise OptionError(f'stream {name!r}: say which column is the time, time="ts" for example')
    spec = StreamSpec(
        name=name,
        schema=source.schema,
        time=time,
        contracts=_contracts(name, time, progress),
        unit=unit,
        stamp=stamp,
        channel=channel,
        channels=tuple(channels),
        groups=(groups,) if isinstance(groups, str) else tuple(groups or ()),
        idle=idle,
        late=late,
        jump=jump,
        punctuate=punctuate,
        stale_after=stale_after,
    )
    return SourceNode.of(spec, source, origin)


def _source(given: Any) -> Source:
    if is_dataframe(given):
        return SparkFrame(given)
    ready = hasattr(given, "open") and hasattr(given, "schema")
    return cast("Source", given) if ready else replay(given)


def _contracts(
    name: str, time: str, progress: Contract | Mapping[str, Contract] | None
) -> dict[str, Contract]:
    if progress is None:
        return {time: Ordered()}
    if not isinstance(progress, Mapping):
        progress = {time: progress}
    for each in progress.values():
        if not isinstance(each, Contract):
            raise OptionError(
                f"stream {name!r}: progress= is lw.ordered(), lw.within('5 seconds'),"
                " lw.within_rows(500), lw.punctuated('column'), lw.learned(0.999) or"
                f" lw.unpromised(), not {each!r}"
            )
    if time not in progress:
        raise QueryError(f"stream {name!r}: progress= must also say how {time!r} progresses")
    return {time: progress[time], **progress}
