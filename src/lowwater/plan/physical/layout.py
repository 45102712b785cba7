"""A layout says which operators of a plan run together on many machines, and how rows are routed.

Operators that can share one way of spreading rows are fused into a *stage*. A row goes to a bucket
by the values of some columns, its *key*. The key has to suit every operator of the stage: rows that
the operator brings together must have equal keys. So the key's columns, followed from where rows
enter the stage to an operator's input, must be among the columns by which the operator can be
spread. Operators declare these columns, and everything else that is used here, as their traits.

A queue of updates begins a stage. An operator that brings several update streams together, such as
a join of their newest rows, is fused with all their queues if one key suits them, so that replaced
rows are sent nowhere.

Where no key suits an aggregate, two things can be done. If only row-wise operators follow it, every
bucket aggregates its own rows, and the partial answers, which close everywhere at the same
punctuation, are put together afterwards without state (*combined*). They close at the same
punctuation under the conditions given below. Otherwise the aggregate begins a new stage.

An order is combined in the same way. Every bucket holds rows back until the mark passes them, and
the rows that all buckets release in a batch are sorted in one place. The result of one batch
follows that of the batch before if, at the end of every batch, the mark of the order is the same in
all buckets: rows at or below it have left everywhere, and no row still to come is below it.

The marks are the same for these reasons. Every bucket of a stage gets the same punctuation in the
same order: all punctuation of a source goes to all buckets, and so do ticks of the clock and ends.
Punctuation on one group may go to the group's bucket alone, but not in a stage with a combined
operator, and an order goes by punctuation on the whole stream. The punctuation of an operator of an
earlier stage is sent by each of its buckets to all buckets here, and they take the least of it.
From there on, operators that declare themselves *alike* emit the same punctuation in all buckets.
Behind an operator that is not alike, an order or an aggregate that no key suits begins a new stage.

Invariant: in every stage, two rows that any of its operators must bring together enter with equal
keys, or the stage is single, or the operator is the combined one. An order that only row-wise
operators follow is combined, or in a single stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import polars as pl

from lowwater.plan.physical.operator import Operator, PhysicalPlan, SourceOperator, Way

Place = tuple[int, str]
"""A column of the rows that enter a stage: (operator that emits them, column)."""
Key = frozenset[Place]
"""Columns that hold the same value, one of each input that carries it."""
Columns = Mapping[str, Key]
"""Columns of some rows, with the key whose value each holds."""


@dataclass(frozen=True)
class Edge:
    """Rows that enter a stage."""

    producer: int
    """The index of a source, or of an operator of an earlier stage, that gives the rows."""
    key: tuple[tuple[str, pl.DataType], ...] | None
    """The columns by which rows are spread, each with the type in which it is compared; None if
    rows may go to any bucket."""


@dataclass(frozen=True)
class Stage:
    """Operators that run together, one copy a bucket."""

    number: int
    operators: tuple[int, ...]
    edges: tuple[Edge, ...]
    exports: tuple[int, ...]
    """The operators whose rows go to a later stage or are the result."""
    single: bool
    """True if all rows must be in one bucket."""
    combined: int | None = None
    """The operator whose copies answer in part, to be put together after the stage; None if there
    is none."""


@dataclass(frozen=True)
class Layout:
    """The stages of a plan, and the operators that run after the last one."""

    stages: tuple[Stage, ...]
    tail: tuple[int, ...]
    """Row-wise operators that follow the combined one."""

    def spelled(self, stage: Stage) -> str:
        """Return how rows are spread in a stage, in words."""
        if stage.single:
            return "one bucket"
        keys = [[name for name, _ in edge.key] for edge in stage.edges if edge.key]
        columns = [" or ".join(dict.fromkeys(names)) for names in zip(*keys, strict=False)]
        return f"by {', '.join(columns)}" if columns else "anywhere"


def lay_out(plan: PhysicalPlan, single: Iterable[int] = ()) -> Layout:
    """Cut a plan into stages; the sources named in ``single`` need all their rows in one bucket."""
    planner = _Planner(plan, frozenset(single))
    for operator in plan.operators:
        planner.place(operator)
    return planner.layout()


@dataclass(frozen=True)
class _Group:
    """Entries of a stage that must be spread by one key."""

    entries: frozenset[int]
    keys: frozenset[Key]
    """The keys that suit all operators so far; none if rows may go anywhere."""


@dataclass(frozen=True)
class _Open:
    """A stage being put together."""

    single: bool = False
    groups: tuple[_Group, ...] = ()
    stateful: tuple[int, ...] = ()
    combined: int | None = None


class _Planner:
    """Places the operators of a plan into stages, inputs before their consumers."""

    def __init__(self, plan: PhysicalPlan, single: frozenset[int]):
        self._plan = plan
        self._single = single
        self._stages: dict[int, _Open] = {}  # by number; numbers rise, with gaps
        self._stage: list[int | None] = []  # per operator; None while any stage would do
        self._columns: list[Columns] = []  # per operator: its output

    # ---- placing ---------------------------------------------------------------------------

    def place(self, operator: Operator) -> None:
        """Put the next operator of the plan into a stage."""
        if isinstance(operator, SourceOperator):
            self._stage.append(None)
            self._columns.append(self._fresh(operator.index))
            return
        known = {number for each in operator.inputs if (number := self._stage[each]) is not None}
        if operator.traits.stateful:
            stage: int | None = self._stage_of(operator, known)
        else:
            stage = max(known, default=None)  # over several stages: in the last of them
        inputs = self._inputs(operator, frozenset() if stage is None else frozenset({stage}))
        self._stage.append(stage)
        self._columns.append(
            {name: key for name, way in operator.traits.passes if (key := _key(way, inputs))}
        )

    def _stage_of(self, operator: Operator, known: set[int]) -> int:
        """Return the stage of an operator that has state: that of its inputs, or a new one."""
        first = min(known, default=None)
        if first is not None and (len(known) == 1 or self._all_queues(known)):
            before = [self._stages[number] for number in sorted(known)]
            fused = self._fused(_joined(before), operator, frozenset(known))
            if fused is not None:
                for number in known:
                    del self._stages[number]
                self._stages[first] = fused
                self._stage = [first if number in known else number for number in self._stage]
                return first
        new = max(self._stages, default=-1) + 1
        alone = self._fused(_Open(), operator, frozenset({new}))
        self._stages[new] = alone or _Open(single=True, stateful=(operator.index,))
        return new

    def _all_queues(self, known: set[int]) -> bool:
        """Return True if stages hold nothing but queues of updates that read sources, and can be
        fused."""
        operators = self._plan.operators
        stages = [self._stages[number] for number in known]
        stateful = {index for each in stages for index in each.stateful}
        entries = {index for each in stages for group in each.groups for index in group.entries}
        return (
            len({each.single for each in stages}) == 1
            and all(operators[index].traits.updates for index in stateful)
            and all(isinstance(operators[index], SourceOperator) for index in entries)
        )

    def _fused(self, stage: _Open, operator: Operator, inside: frozenset[int]) -> _Open | None:
        """Return a stage with one more operator; None if no key suits it and all that are there.

        ``inside`` are the numbers under which the stage's operators are known so far.
        """
        index, traits = operator.index, operator.traits
        entries = frozenset(self._reached(operator.inputs, inside)[1])
        more = replace(stage, stateful=(*stage.stateful, index))
        if stage.single or self._single & entries:
            single = stage.single or not stage.stateful
            return replace(more, single=True) if single else None
        in_order = traits.ordered and self._only_rowwise_follow(index)
        if in_order and not (traits.releases_alike and self._alike(operator, inside)):
            return None
        met = [group for group in stage.groups if group.entries & entries]
        inputs = self._inputs(operator, inside)
        keys = {key for way in traits.together if (key := _key(way, inputs))}
        keys = {
            key
            for key in keys
            if all(_restricted(key, group.entries) in group.keys for group in met)
            and _covers(key, entries)
            and self._type(key) is not None
        }
        if not keys:
            anywhere = self._can_combine(operator, inside, entries, bool(met))
            if not anywhere:
                return None
            groups = stage.groups if met else (*stage.groups, _Group(entries, frozenset()))
            return replace(more, groups=groups, combined=index)
        all_entries = entries.union(*(group.entries for group in met))
        others = tuple(group for group in stage.groups if group not in met)
        return replace(
            more,
            groups=(*others, _Group(all_entries, frozenset(keys))),
            combined=index if in_order else stage.combined,
        )

    def _can_combine(
        self, operator: Operator, inside: frozenset[int], entries: frozenset[int], spread: bool
    ) -> bool:
        """Return True if an operator can answer in part in every bucket although no key suits it.

        ``spread`` is true if the rows it reads are spread by a key already.
        """
        last = self._only_rowwise_follow(operator.index)
        if not last or not self._alike(operator, inside):
            return False
        if not operator.traits.ordered:
            return operator.traits.combines
        if len(operator.inputs) > 1:
            return False  # rows of all inputs have to meet
        # Rows of an earlier stage have no key to be spread by.
        from_sources = all(isinstance(self._plan.operators[e], SourceOperator) for e in entries)
        return spread or from_sources

    def _only_rowwise_follow(self, index: int) -> bool:
        """Return True if only row-wise operators lie between an operator and the result."""
        while index != self._plan.result.index:
            consumers = self._plan.consumers(index)
            if len(consumers) != 1:
                return False
            index = consumers[0][0]
            if not self._plan.operators[index].traits.rowwise:
                return False
        return not self._plan.consumers(index)

    # ---- what is inside a stage ------------------------------------------------------------

    def _enters(self, index: int, inside: frozenset[int]) -> bool:
        """Return True if an operator's rows enter a stage from outside."""
        source = isinstance(self._plan.operators[index], SourceOperator)
        number = self._stage[index]
        return source or (number is not None and number not in inside)

    def _reached(self, ends: Iterable[int], inside: frozenset[int]) -> tuple[set[int], set[int]]:
        """Return the operators of a stage whose rows reach ``ends``, with ``ends``; and the
        operators outside it whose rows enter the stage on the way."""
        members: set[int] = set()
        entries: set[int] = set()
        waiting = list(ends)
        while waiting:
            index = waiting.pop()
            if self._enters(index, inside):
                entries.add(index)
            elif index not in members:
                members.add(index)
                waiting += self._plan.operators[index].inputs
        return members, entries

    def _alike(self, operator: Operator, inside: frozenset[int]) -> bool:
        """Return True if all buckets of a stage get the same punctuation for an operator."""
        members, _ = self._reached(operator.inputs, inside)
        return all(self._plan.operators[each].traits.alike for each in members)

    def _inputs(self, operator: Operator, inside: frozenset[int]) -> list[Columns]:
        """Return the columns of each input with their keys, as a stage sees them."""
        return [
            self._fresh(each) if inside and self._enters(each, inside) else self._columns[each]
            for each in operator.inputs
        ]

    def _fresh(self, index: int) -> Columns:
        """Return the columns of rows that enter a stage, each a key of its own."""
        schema = self._plan.operators[index].node.schema
        return {name: frozenset({(index, name)}) for name in schema}

    # ---- closing ---------------------------------------------------------------------------

    def layout(self) -> Layout:
        """Return the layout once all operators are placed."""
        last = self._plan.result.index
        if not self._stages:
            self._stages[0] = _Open()
        newest = max(self._stages)
        if self._stage[last] is None:
            self._stage[last] = newest
        numbers = {number: rank for rank, number in enumerate(sorted(self._stages))}
        stages = tuple(self._closed(number, rank) for number, rank in numbers.items())
        return Layout(stages, self._tail(self._stages[newest].combined))

    def _tail(self, combined: int | None) -> tuple[int, ...]:
        tail: list[int] = []
        while combined is not None and combined != self._plan.result.index:
            combined = self._plan.consumers(combined)[0][0]
            tail.append(combined)
        return tuple(tail)

    def _closed(self, number: int, rank: int) -> Stage:
        stage, inside = self._stages[number], frozenset({number})
        exports = self._exports(number)
        members, entries = self._reached(exports, inside)
        return Stage(
            rank,
            tuple(sorted(members)),
            tuple(Edge(entry, self._edge_key(stage, entry)) for entry in sorted(entries)),
            exports,
            stage.single or bool(self._single & entries),
            stage.combined,
        )

    def _exports(self, number: int) -> tuple[int, ...]:
        stage = self._stages[number]
        if stage.combined is not None:
            return (stage.combined,)
        last = self._plan.result.index
        leaving = {
            index
            for index, own in enumerate(self._stage)
            if own == number
            and any(
                self._stage[consumer] not in (None, number)
                for consumer, _ in self._plan.consumers(index)
            )
        }
        if self._stage[last] == number:
            leaving.add(last)
        return tuple(sorted(leaving))

    # ---- keys ------------------------------------------------------------------------------

    def _edge_key(self, stage: _Open, entry: int) -> tuple[tuple[str, pl.DataType], ...] | None:
        """Return the columns by which rows of an entry are spread."""
        keys = next((g.keys for g in stage.groups if entry in g.entries), frozenset())
        spread = []
        for key in sorted(self._by_group(keys) or keys, key=sorted):
            dtype = self._type(key)
            assert dtype is not None
            spread.append((next(name for at, name in key if at == entry), dtype))
        return tuple(spread) or None

    def _by_group(self, keys: Iterable[Key]) -> set[Key]:
        """Return the keys that bring all rows of a group into one bucket, if punctuation per group
        serves all operators and is sent to that bucket alone."""
        return {key for key in keys if all(self._names_group(*place) for place in key)}

    def _names_group(self, entry: int, column: str) -> bool:
        operator = self._plan.operators[entry]
        if not isinstance(operator, SourceOperator) or column not in operator.spec.groups:
            return False
        return not any(demand.linear for demand in self._plan.demands[entry].values())

    def _type(self, key: Key) -> pl.DataType | None:
        """Return the type in which the values of a key are compared; None if there is none."""
        kinds = {self._plan.operators[at].node.schema[name] for at, name in key}
        if all(kind.is_integer() for kind in kinds):
            return pl.Int64()
        if all(kind.is_numeric() and not kind.is_decimal() for kind in kinds):
            return pl.Float64()
        if all(kind == pl.String or isinstance(kind, pl.Categorical | pl.Enum) for kind in kinds):
            return pl.String()
        return kinds.pop() if len(kinds) == 1 else None


def _joined(stages: list[_Open]) -> _Open:
    """Return several stages as one."""
    first, *others = stages
    if not others:
        return first
    return _Open(
        first.single,
        tuple(group for each in stages for group in each.groups),
        tuple(index for each in stages for index in each.stateful),
    )


def _key(way: Way, inputs: list[Columns]) -> Key:
    """Return the key whose value all columns of a way hold; empty if one of them holds none."""
    keys = [columns.get(name) for name, columns in zip(way, inputs, strict=True)]
    return frozenset().union(*(key for key in keys if key)) if all(keys) else frozenset()


def _restricted(key: Key, entries: frozenset[int]) -> Key:
    return frozenset(place for place in key if place[0] in entries)


def _covers(key: Key, entries: frozenset[int]) -> bool:
    """Return True if a key names one column of every entry."""
    return {at for at, _ in key} == entries and len(key) == len(entries)
