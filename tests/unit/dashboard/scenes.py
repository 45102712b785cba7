"""Runs as a page sees them, made by hand: marks of streams and channels at one moment."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import polars as pl

import lowwater as lw
from lowwater.dashboard.observation import Observation, WatchedQuery
from lowwater.metrics import ChannelMetrics, OperatorMetrics, RunMetrics, StreamMetrics
from lowwater.plan.physical.planner import compile_plan
from lowwater.progress.late import LateRows

SCHEMA = {"ts": pl.Int64(), "host": pl.String()}
CLOCK = 1_700_000_000.0


def declared(name: str, **options: Any) -> lw.Stream:
    return lw.stream(pl.DataFrame(schema=SCHEMA), name=name, time="ts", **options)


def told(name: str, mark: int | None, **about: Any) -> StreamMetrics:
    """A stream at a mark, with channels and their marks if given."""
    channels: dict[str, int | None] = about.pop("channels", {})
    silent: dict[str, float] = about.pop("silent", {})
    late = tuple(LateRows(name, *line) for line in about.pop("late", ()))
    ordered = sorted(channels.items(), key=lambda each: -1 if each[1] is None else each[1])
    found = StreamMetrics(name, 10, sum(x.rows for x in late), late, {"ts": mark}, None, 0, 0, 0, 0)
    return replace(
        found,
        channels=tuple(ChannelMetrics(c, at, silent.get(c)) for c, at in ordered),
        channel_count=len(channels),
        ahead=max((at for at in channels.values() if at is not None), default=None),
        **about,
    )


def operator(title: str, **about: Any) -> OperatorMetrics:
    nothing = OperatorMetrics(title, "", 0, 0, 0, 0, {}, 0, 0, 0, 0)
    return replace(nothing, **about)


def looked(query: lw.Stream, *streams: StreamMetrics, **options: Any) -> Observation:
    """A query at work, its streams as told."""
    plan = compile_plan(query.node)
    error = options.pop("error", None)
    run: Any = SimpleNamespace(active=options.pop("active", True), exception=error)
    found = {each.title: each for each in options.pop("operators", ())}
    metrics = RunMetrics(
        0,
        1.0,
        tuple(found.get(o.title, operator(o.title)) for o in plan.kernels),
        streams,
        *[0] * 4,
    )
    watched = WatchedQuery(
        "1", "query", "console", plan, run, options.pop("live", False), CLOCK - 10
    )
    return Observation(watched, metrics, CLOCK)
