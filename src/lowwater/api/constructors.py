"""These functions make streams from a source, from a query text, or from streams joined."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import count
from typing import Any, cast

from lowwater.api.query import Stream, condition, joinable, line_of_user
from lowwater.errors import OptionError, QueryError
from lowwater.joins.oblivious.options import Strategy
from lowwater.joins.ordered.strategy import Order
from lowwater.plan.builders import joins as join_builders
from lowwater.plan.builders import multi_joins as multi_join_builders
from lowwater.plan.builders.oblivious import options_of
from lowwater.plan.nodes import SourceNode
from lowwater.plan.sql.query import plan_query
from lowwater.progress.contract import Contract, Ordered
from lowwater.progress.options import Generation, Idle, Jump, jump
from lowwater.progress.spec import LatePolicy, Stamp, StreamSpec
from lowwater.sources.replay import replay
from lowwater.sources.source import Source
from lowwater.sources.spark import SparkFrame, is_dataframe
from lowwater.stream.duration import Duration
from lowwater.stream.size import Size
from lowwater.updates.options import (
    BUDGET,
    COMPLETE_WITHIN,
    DELETE_WHEN,
    EXPIRE,
    FRESH_WITHIN,
    SCHEDULE,
    UPDATE_KEY,
    UPDATE_WINDOWS,
    WEIGHTS,
    FreshWithin,
    Schedule,
    Windows,
)

_names = count(1)


def stream(
    source: Any,
    *,
    name: str | None = None,
    time: str | None = None,
    progress: Contract | Mapping[str, Contract] | None = None,
    unit: str = "s",
    stamp: Stamp = "external",
    channel: str | None = None,
    channels: Sequence[Hashable] = (),
    groups: str | Sequence[str] | None = None,
    idle: Idle | None = None,
    late: LatePolicy = "side",
    jump: Jump | None = jump("1 day"),  # noqa: B008
    punctuate: Generation | None = None,
    stale_after: Duration | None = None,
    ended: str | None = None,
    update_key: str | Sequence[str] | None = None,
    schedule: Schedule | None = None,
    weights: Mapping[Hashable, float | Duration] | None = None,
    budget: Duration | None = None,
    complete_within: Duration | None = None,
    windows: Windows | None = None,
    expire: Duration | None = None,
    delete_when: str | None = None,
    fresh_within: FreshWithin | None = None,
) -> Stream:
    """Declare a stream: the source of its rows, and the promises about their times.

    >>> log = pl.DataFrame({"ts": [1, 3, 2, 61], "device": ["a", "a", "b", "a"]})
    >>> s = lw.stream(log, name="s", time="ts", progress=lw.within("5 seconds"))
    >>> s.window("1 minute").agg(n="count(*)").collect()["n"].to_pylist()
    [3, 1]

    ``source``
        The source of the rows: a streaming DataFrame of Spark; a source that ``lw.replay``,
        ``lw.push`` or a ``lw.Workload`` gives; or a table of PyArrow or Polars, which is a log of
        arrivals.
    ``name``
        Name of the stream in plans, metrics and errors. Default: ``stream1``, ``stream2``, ...
    ``time``
        Name of the column by which the stream progresses; must be given (default: None). With
        ``stamp="internal"`` or ``"latent"``, name of the column to make.
    ``progress``
        The contract on ``time``: ``lw.ordered()`` (default), ``lw.within("5 seconds")``,
        ``lw.within_rows(500)``, ``lw.punctuated("column")``, ``lw.learned(0.999)`` or
        ``lw.unpromised()``; or a mapping of columns to contracts if several columns progress. It
        holds per channel or group, if there are any.
    ``unit``
        Unit of integers in a time column: ``"s"`` (default), ``"ms"``, ``"us"`` or ``"ns"``.
    ``stamp``
        Origin of a row's time: a column of the row ("external", default), the engine's clock when
        the row comes in ("internal"), or the clock at the first operator that needs a time
        ("latent").
    ``channel``
        Name of the column whose values are channels, each in an order of its own, such as a device
        or a Kafka partition. The stream's mark is the least of its channels' marks. Default: None,
        the stream is one channel.
    ``channels``
        Values of ``channel`` from which rows will come. The stream's mark waits for each of them.
        Default: none; a channel is known from its first row on.
    ``groups``
        Column, or columns, whose values progress apart: a group that is behind delays its own
        windows and no others. Excludes ``channel``. Default: None.
    ``idle``
        The way in which the mark of a silent source moves: ``lw.on_demand(...)`` or
        ``lw.heartbeat(...)``. Default: None, the mark moves with the next row.
    ``late``
        Late rows, and rows without a usable time or channel, go to the side output ("side",
        default), are counted and dropped ("drop"), or end the run ("fail").
    ``jump``
        Treatment of a row dated far ahead of its channel, ``lw.jump(over, then)``. Default:
        ``lw.jump("1 day")``, which warns. None: no row is treated so; one wrong date may then make
        all later rows late.
    ``punctuate``
        When marks become punctuation: ``lw.every(step)`` of the column, or ``lw.timer(period)`` of
        the clock. Default: None, whenever an operator can use them.
    ``stale_after``
        Length of time, by the stream, after which a channel that is behind most others, or silent
        while others send, no longer holds the stream back; until it has caught up, its rows below
        the stream's mark are late. Needs ``channel``. Default: None, never.
    ``ended``
        Name of a Boolean column that is true in the last row of a channel or group: no more rows of
        it come. Its answers leave, it holds no mark, and nothing of it is kept. If that row has no
        time, it is a promise only. Needs ``channel`` or ``groups``. Default: None.
    ``update_key``
        Column, or columns, by whose values rows replace each other: this makes an update stream.
        Under load only the newest row of each key is worked on. Default: None, all rows are. The
        options that follow need it.
    ``schedule``
        The key that is worked on next: the one that has waited longest ("in-place", default), the
        one whose newest row has waited longest ("fifo"), keys whose rate is below
        ``1 / (cost * waiting keys)`` before others ("linecutting"), keys that are rarely updated
        before others, but so that no key waits too long ("rare-first"), or the one whose service is
        worth most by age and rate ("auto"). For comparison, "append" works on all rows and
        "shedding" on a random share of them.
    ``weights``
        Weights of the staleness of single keys: a mapping of keys to numbers above zero, or to the
        periods at which somebody looks at them, ``{"GOOG": "1 minute", "GM": "1 hour"}``. Default:
        None, all keys have weight 1.
    ``budget``
        Length of time that the work of one batch on Spark may take. Default: None, the length that
        keeps answers freshest.
    ``complete_within``
        Length of time: while no row waits longer than this, all rows are worked on. Default: None,
        any newer row of a key replaces the one that waits.
    ``windows``
        The window of a key that is shown next: the newest that is complete ("lazy", default) or
        that began ("eager").
    ``expire``
        Length of time after its newest row, by the stream, after which a key is forgotten. Default:
        None, never.
    ``delete_when``
        SQL condition on a row whose key is gone, such as ``"status = 'closed'"``. Default: None.
    ``fresh_within``
        Length of time for which the answer of a key may be out of date, or a mapping of keys to
        such lengths. Keys that are out of date for longer are counted and named in the metrics, and
        a warning says so once; the order of service does not change. Default: None, any.
    """
    options = {
        SCHEDULE: schedule,
        WEIGHTS: weights,
        BUDGET: budget,
        COMPLETE_WITHIN: complete_within,
        UPDATE_WINDOWS: windows,
        EXPIRE: expire,
        DELETE_WHEN: delete_when,
        FRESH_WITHIN: fresh_within,
    }
    if update_key is None:
        for option, given in options.items():
            if given is not None:
                raise OptionError(option, " is for update streams; add ", UPDATE_KEY)
    name = name or f"stream{next(_names)}"
    rows = _source(source)
    if time is None:
        raise OptionError(f'stream {name!r}: say which column is the time, time="ts" for example')
    spec = StreamSpec(
        name=name,
        schema=rows.schema,
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
        ended=ended,
    )
    node = SourceNode.of(spec, rows, line_of_user())
    found = Stream(node, time if stamp == "latent" else None)
    if update_key is None:
        return found
    return found.updates(
        update_key,
        schedule,
        weights=weights,
        budget=budget,
        complete_within=complete_within,
        windows=windows,
        expire=expire,
        delete_when=delete_when,
        fresh_within=fresh_within,
    )


def _contracts(
    stream: str, time: str, progress: Contract | Mapping[str, Contract] | None
) -> dict[str, Contract]:
    """Return the contract of each column that progresses, that of the main time first."""
    if progress is None:
        return {time: Ordered()}
    progress = progress if isinstance(progress, Mapping) else {time: progress}
    for each in progress.values():
        if not isinstance(each, Contract):
            raise OptionError(
                f"stream {stream!r}: progress= is lw.ordered(), lw.within('5 seconds'),"
                " lw.within_rows(500), lw.punctuated('column'), lw.learned(0.999) or"
                f" lw.unpromised(), not {each!r}"
            )
    if time not in progress:
        raise QueryError(f"stream {stream!r}: progress= must also say how {time!r} progresses")
    return {time: progress[time], **progress}


def _source(given: Any) -> Source:
    if is_dataframe(given):
        return SparkFrame(given)
    ready = hasattr(given, "open") and hasattr(given, "schema")
    return cast("Source", given) if ready else replay(given)


def sql(text: str, /, **given: Any) -> Stream:
    """Plan a query text over named streams.

    >>> a = lw.stream(pl.DataFrame({"ts": [1, 2]}), name="a", time="ts")
    >>> b = lw.stream(pl.DataFrame({"ts": [1, 70]}), name="b", time="ts")
    >>> text = "SELECT count(*) AS n FROM A UNION B [RANGE 1 minute] HAVING count(*) > :least"
    >>> lw.sql(text, A=a, B=b, least=1).collect()["n"].to_pylist()
    [3]

    ``text``
        One query, at most 100,000 characters. Errors underline the part of it that is wrong.
    ``given``
        By name: the streams that the query reads, and the values of its parameters (``:least``),
        which are numbers, texts, truth values, times and lengths of time.
    """
    streams = {name: each.node for name, each in given.items() if isinstance(each, Stream)}
    values = {name: each for name, each in given.items() if name not in streams}
    for name, each in values.items():
        if hasattr(each, "columns") or hasattr(each, "schema"):
            raise OptionError(f"{name} is no stream; make it one: lw.stream({name}, time=...)")
    return Stream(plan_query(text, streams, values, line_of_user()))


def join(
    streams: Sequence[Stream],
    on: multi_join_builders.On = (),
    within: multi_join_builders.Windows | None = None,
    *,
    where: str | None = None,
    times: Sequence[str] | None = None,
    suffixes: Sequence[str] | None = None,
    order: Order | None = None,
    alpha: float | None = None,
    memory: Size | None = None,
    strategy: Strategy | None = None,
    accuracy: float | None = None,
    latency: Duration | None = None,
    read_ahead: int | str | None = None,
) -> Stream:
    """Join many streams at once, and return the results as a stream.

    A result is one row of each stream, with equal keys and times near each other. No partial
    results are kept, only rows of the streams.

    >>> rows = pl.DataFrame({"ts": [1, 2], "k": ["x", "y"]})
    >>> a, b, c = (lw.stream(rows, name=name, time="ts") for name in "abc")
    >>> lw.join([a, b, c], on="k", within="1 minute").collect()["k"].to_pylist()
    ['x', 'y']

    ``streams``
        Two streams or more.
    ``on``
        Columns that must be equal: names, or tuples of one name for each stream. A column that all
        streams call alike is in the results once. Default: none.
    ``within``
        Length of time by which a row may be before the latest of the rows it is joined with, or one
        for each stream. Default: None, times must be equal and be among ``on``. More than two
        streams must all promise something, if it is given.
    ``where``
        SQL condition on the columns of the results. Default: None.
    ``times``
        The time columns that are compared, one of each stream. Default: their main times.
    ``suffixes``
        Suffixes of columns whose names are taken, one for each stream after the first.
        Default: ``"_2"``, ``"_3"`` and so on.
    ``order``, ``alpha``
        The order of the results, by the latest time of their rows, as in :meth:`Stream.join`.
        Default: None, they leave as they are found.
    ``memory``, ``strategy``, ``accuracy``, ``latency``, ``read_ahead``
        Options of a join without ``within``, or of two streams, as in :meth:`Stream.join`. Default:
        None, rows are kept as long as promises demand.
    """
    if isinstance(streams, Stream):
        raise OptionError("join takes a list of streams: lw.join([a, b, c], ...)")
    return Stream(
        multi_join_builders.joined_together(
            [joinable(each, "join").node for each in streams],
            on=on,
            within=within,
            where=condition(where),
            times=times,
            suffixes=suffixes,
            ordering=join_builders.ordering_of(order, alpha),
            options=options_of(memory, strategy, accuracy, latency, read_ahead),
            origin=line_of_user(),
        )
    )
