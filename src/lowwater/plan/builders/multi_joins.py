"""Builders of joins of many inputs check equal columns, windows, times and names of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeVar

import polars as pl

from lowwater.errors import OptionError, QueryError
from lowwater.joins.oblivious.options import Oblivious
from lowwater.joins.ordered.strategy import Ordering
from lowwater.joins.shape import Carried
from lowwater.plan import nodes
from lowwater.plan.builders import oblivious as oblivious_builders
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.expressions import Formula, compile_predicate
from lowwater.plan.main_time import main_time
from lowwater.plan.nodes import Node, Progressing
from lowwater.stream.duration import Duration
from lowwater.stream.time_domain import TimeDomain

On = str | Sequence[str | tuple[str, ...]]
"""Column names, or tuples with one name for each input."""
Windows = Duration | Sequence[Duration]
"""One window, or one for each input."""


def joined_together(
    inputs: Sequence[Node],
    *,
    on: On,
    within: Windows | None = None,
    where: Formula | None = None,
    times: Sequence[str] | None = None,
    suffixes: Sequence[str] | None = None,
    ordering: Ordering | None = None,
    options: Oblivious | None = None,
    origin: str,
) -> Node:
    """Return the join of many inputs, bounded on a progressing attribute of each.

    A join without a window, or of two inputs, measures the disorder of its inputs if ``options``
    are given or an input promises nothing; otherwise it drops rows by promises alone.
    """
    if len(inputs) < 2:
        raise OptionError(f"a join takes a list of two streams or more, not of {len(inputs)}")
    if sum(each.updates is not None for each in inputs) > 1:
        update_builders.refuse(
            inputs, "a join of many", "join update streams two at a time, a.join(b)"
        )
    keys = _keys(inputs, on)
    chosen = _times(inputs, keys, within, times)
    domain = common_domain(inputs, chosen)
    windows = _windows(domain, len(inputs), keys, chosen, within)
    if within is not None and len(inputs) > 2:
        oblivious_builders.refuse_beside(options, "leave within= out, or these options")
        oblivious_builders.refuse_unpromised(inputs, chosen, "a join of many with within=")
    columns = _columns(inputs, keys, _suffixes(suffixes, len(inputs)))
    how = None
    if within is None or len(inputs) == 2:
        how = oblivious_builders.measuring_options(inputs, chosen, options, through=within is None)
    if how is not None:
        equal = None if any(windows) else columns.out(0, chosen[0])
        oblivious_builders.refuse_order(ordering, equal)
        return oblivious_builders.measuring_join(
            inputs,
            keys=keys,
            times=chosen,
            names=columns.names,
            merged=columns.merged,
            schema=columns.schema,
            where=where,
            options=how,
            origin=origin,
            windows=windows,
        )
    out_times = [columns.out(at, time) for at, time in enumerate(chosen)]
    carried: tuple[Carried, ...] = ()
    for at, (node, time) in enumerate(zip(inputs, chosen, strict=True)):
        carried += carried_columns(at, node, time, columns.own(at), out_times)
    places = [(at, time, out_times[at]) for at, time in enumerate(chosen)]
    places += [(each.side, each.name, each.out) for each in carried]
    node = nodes.MultiJoinNode(
        tuple(inputs),
        columns.schema,
        _progress(inputs, chosen, windows, places, domain),
        out_times[0],
        chosen,
        keys,
        windows,
        tuple(columns.names),
        columns.merged,
        compile_predicate(where, columns.schema) if where else None,
        carried=carried,
        origin=origin,
    )
    return node if ordering is None else in_order(node, ordering)


def _keys(inputs: Sequence[Node], on: On) -> tuple[tuple[str, ...], ...]:
    number, keys = len(inputs), []
    for each in [on] if isinstance(on, str) else on:
        names = (each,) * number if isinstance(each, str) else tuple(each)
        if len(names) != number:
            raise OptionError(
                f"on= takes column names, or tuples of {number} of them, one of each input,"
                f" not {each!r}"
            )
        check_types(inputs, names)
        keys.append(names)
    return tuple(keys)


def _times(
    inputs: Sequence[Node],
    keys: Sequence[tuple[str, ...]],
    within: object,
    times: Sequence[str] | None,
) -> tuple[str, ...]:
    if times is not None:
        if isinstance(times, str) or len(times) != len(inputs):
            raise OptionError(
                f"times= names one time column of each of the {len(inputs)} inputs, not {times!r}"
            )
        return tuple(times)
    if within is None:
        equal = oblivious_builders.best_times(inputs, keys)
        if equal is None:
            raise QueryError(_UNBOUNDED)
        return equal
    say = "times=[{}, ...], one attribute of each input"
    return tuple(main_time(node, "a join", say, " of every input") for node in inputs)


_UNBOUNDED = (
    "this join could never forget a row: nothing bounds how far apart matching rows may be. Give"
    " within='2 minutes', within=['2 minutes', '10 seconds', ...] with one window of each input, or"
    " put a progressing attribute of all inputs among the on= columns"
)


def _windows(
    domain: TimeDomain,
    number: int,
    keys: Sequence[tuple[str, ...]],
    times: tuple[str, ...],
    within: Windows | None,
) -> tuple[int, ...]:
    if times in keys:
        return (0,) * number
    if within is None:
        raise QueryError(_UNBOUNDED)
    if isinstance(within, Duration):
        within = [within] * number
    if not isinstance(within, Sequence) or len(within) != number:
        raise OptionError(
            f"within= takes one length of time, or a list of {number}, one of each input,"
            f" not {within!r}"
        )
    windows = tuple(domain.ticks(each, "within=") for each in within)
    if min(windows) < 0:
        raise OptionError(
            f"within={within!r} has a window below zero; a window of 0 joins equal times"
        )
    return windows


def _suffixes(suffixes: Sequence[str] | None, number: int) -> list[str]:
    """Return the suffix of each input; that of the first one is empty."""
    if suffixes is None:
        return ["", *(f"_{at}" for at in range(2, number + 1))]
    if isinstance(suffixes, str) or len(suffixes) != number - 1:
        raise OptionError(
            f"suffixes= takes one suffix of each input after the first, {number - 1} here,"
            f" not {suffixes!r}"
        )
    return ["", *suffixes]


@dataclass(frozen=True)
class _OutputColumns:
    """The names of columns: inside the join by input, and in the output."""

    names: list[dict[str, str]]
    merged: dict[str, str]
    schema: dict[str, pl.DataType]

    def out(self, at: int, column: str) -> str:
        """Return the output column that has the values of an input's column."""
        inside = self.names[at][column]
        return self.merged.get(inside, inside)

    def own(self, at: int) -> dict[str, str]:
        """Return the output names of an input's columns, without those merged into another's."""
        return {name: out for name, out in self.names[at].items() if out not in self.merged}


def _columns(
    inputs: Sequence[Node], keys: Sequence[tuple[str, ...]], suffixes: Sequence[str]
) -> _OutputColumns:
    """Return the names of columns; a key column that several inputs call alike is in the output
    once."""
    found = _OutputColumns([], {}, {})
    for at, (node, suffix) in enumerate(zip(inputs, suffixes, strict=True)):
        names: dict[str, str] = {}
        for column, dtype in node.schema.items():
            before = _same_before(keys, at, column)
            if before is not None:
                names[column] = f"__{at + 1}_{column}"
                found.merged[names[column]] = found.out(before, column)
                continue
            name = column + suffix if column in found.schema else column
            if name in found.schema:
                raise QueryError(
                    f"join: column {name!r} would come twice; rename one with select(...) or give"
                    " other suffixes="
                )
            names[column] = name
            found.schema[name] = dtype
        found.names.append(names)
    return found


def _same_before(keys: Sequence[tuple[str, ...]], at: int, column: str) -> int | None:
    """Return the first input before this one that has a key column of the same name; None for
    none."""
    firsts = [names.index(column) for names in keys if names[at] == column]
    return min(firsts) if firsts and min(firsts) < at else None


def _progress(
    inputs: Sequence[Node],
    times: Sequence[str],
    windows: Sequence[int],
    places: Sequence[tuple[int, str, str]],
    domain: TimeDomain,
) -> dict[str, Progressing]:
    """Return the columns that progress, with the most ticks that each can be behind the others."""
    behind: dict[str, dict[str, int]] = {out: {} for _, _, out in places}
    for (at, name, out), (there, column, other) in product(places, places):
        lag = lag_between(inputs, times, windows[at], (at, name), (there, column))
        if other != out and lag is not None:
            behind[out][other] = min(lag, behind[out].get(other, lag))
    return {out: Progressing(domain, behind=lags) for out, lags in behind.items()}


# ---- shared with joins of two inputs -----------------------------------------------------------

J = TypeVar("J", bound=nodes.AnyJoin)


def in_order(node: J, ordering: Ordering) -> J:
    """Return the same join with its results in order; a column that can be behind the time of its
    row without bound no longer progresses."""
    if node.updates is not None:
        update_builders.refuse_order(node)
    if node.oblivious is not None:
        oblivious_builders.refuse_order(ordering, node.time)
    lags = node.out_lags
    progress = {name: each for name, each in node.progress.items() if name in lags}
    usable = [name for name, each in progress.items() if not each.nullable]
    time = usable[0] if usable else None
    return replace(node, progress=progress, time=time, ordering=ordering)


def common_domain(inputs: Sequence[Node], times: Sequence[str]) -> TimeDomain:
    """Return the domain that the times of a join, one of each input, have in common; refuse times
    of different domains."""
    domains = [node.progressing(time, "a join") for node, time in zip(inputs, times, strict=True)]
    for time, domain in zip(times, domains, strict=True):
        if domain != domains[0]:
            raise QueryError(
                f"a join compares times of one kind: {times[0]!r} is {domains[0].dtype} and"
                f" {time!r} is {domain.dtype}, or they count in different units"
            )
    return domains[0]


def check_types(inputs: Sequence[Node], names: Sequence[str]) -> None:
    """Refuse columns that a join compares, one of each input, if their types differ."""
    types = [node.need(name, "join column") for node, name in zip(inputs, names, strict=True)]
    for name, dtype in zip(names, types, strict=True):
        if dtype != types[0]:
            raise QueryError(
                f"join columns must have one type: {names[0]!r} is {types[0]} and {name!r} is"
                f" {dtype}"
            )


def lag_between(
    inputs: Sequence[Node],
    times: Sequence[str],
    reach: int,
    one: tuple[int, str],
    two: tuple[int, str],
) -> int | None:
    """Return the ticks that a column, given by its input and name, can be behind another in a row
    of a join; None for no bound.

    ``reach`` is the most ticks that the time of the first input is behind that of its partners.
    """
    (side, name), (there, column) = one, two
    if side == there:
        return inputs[side].lag(name, column)
    own = inputs[side].lag(name, times[side])
    others = inputs[there].lag(times[there], column)
    return None if own is None or others is None else own + reach + others


def carried_columns(
    side: int, node: Node, time: str, names: Mapping[str, str], taken: Sequence[str]
) -> tuple[Carried, ...]:
    """Return the columns beside an input's time that still progress in the output.

    Rows are kept by their time, so a column is bounded if it cannot be far behind that.
    """
    return tuple(
        Carried(side, name, names[name], attribute.behind[time])
        for name, attribute in node.progress.items()
        if time in attribute.behind and name in names and names[name] not in taken
    )
