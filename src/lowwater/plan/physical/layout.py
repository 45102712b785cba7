"""How a plan is spread over machines: which operators run together, and where rows must go.

Operators that can share one way of spreading rows are fused into a *stage*. A row goes to a bucket
by the values of some columns, its *key*; all operators of the stage must be content with that: rows
they have to bring together must have equal keys. So the key's columns, followed from where rows
enter the stage to an operator's input, must be among the columns the operator partitions by.

A queue of updates begins a stage. What brings several update streams together, a join of their
newest rows, is fused with all their queues if one key suits them, so that rows which are given up
go nowhere.

Where no key suits an aggregate, two things can be done. If only row-wise operators follow it, every
bucket aggregates what it has and the partial answers, which close everywhere at the same promise,
are put together afterwards without state (*combined*). That they do close at the same promise needs
what order needs below. Otherwise a new stage begins at it.

Order is combined likewise. Every bucket holds rows back until the mark passes them, and what all of
them let go in a batch is sorted in one place. That this goes on where the batch before ended needs
one thing: at the end of a batch the mark of the order is the same in all buckets. Rows at or below
it have left everywhere, and rows still to come are nowhere below it.

Why the marks are the same. Every bucket of a stage is sent the same promises and takes them in the
same order. What a source's rows say about progress goes to all buckets; so do the promises of a
replay, ticks of the clock, and ends. What is said of one group may go to the group's bucket alone,
but not in a stage with a combined operator, and an order goes by promises on the whole stream. What
an operator of an earlier stage tells, each of its buckets sends to all buckets here, and they take
the least of it. From there on, a kernel whose promises follow from promises alone tells the same
everywhere. That is so for all kernels but a few. Sessions tell the start of the earliest one open,
and windows that answer gradually (or from a table) what is out: that depends on rows they hold.
So does what a join tells in front of which rows wait, to come out in order, and what one tells that
measures its inputs. Stamps tell when rows came. Behind one of these, an order or an aggregate that
no key suits begins a new stage.

Invariant: in every stage, two rows that any of its operators must bring together enter with equal
keys, or the stage is single, or the operator is the combined one. An order that only row-wise
operators follow is combined, or in a single stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from lowwater.operators.flush import Immediate
from lowwater.plan import nodes
from lowwater.plan.physical.operator import Operator, PhysicalPlan
from lowwater.stream.element import SEQUENCE

Place = tuple[int, str]
"""A column of the rows that enter a stage: (operator that gives them, column)."""
Key = frozenset[Place]
"""The same value seen in each of the inputs that carry it."""


@dataclass(frozen=True)
class Edge:
    """Rows that enter a stage."""

    producer: int
    """A source, or an operator of an earlier stage."""
    key: tuple[tuple[str, pl.DataType], ...] | None
    """Columns to spread by and the type to compare them in; None: rows may go anywhere."""


@dataclass(frozen=True)
class Stage:
    """Operators that run together, one copy a bucket."""

    number: int
    operators: tuple[int, ...]
    edges: tuple[Edge, ...]
    exports: tuple[int, ...]
    """Operators whose rows leave for a later stage, or are the result."""
    single: bool
    """Everything must be in one bucket."""
    combined: int | None = None
    """The operator whose copies answer in part; the parts are put together after the stage."""


@dataclass(frozen=True)
class Layout:
    """The stages of a plan, and what runs after the last one."""

    stages: tuple[Stage, ...]
    tail: tuple[int, ...]
    """Row-wise operators that follow the combined one."""

    def spelled(self, stage: Stage) -> str:
        """How rows are spread in a stage, in words."""
        if stage.single:
            return "one bucket"
        keys = [[name for name, _ in edge.key] for edge in stage.edges if edge.key]
        columns = [" or ".join(dict.fromkeys(names)) for names in zip(*keys, strict=False)]
        return f"by {', '.join(columns)}" if columns else "anywhere"


@dataclass
class _Open:
    """A stage being put together."""

    single: bool = False
    groups: list[tuple[frozenset[int], set[Key]]] = field(default_factory=list)
    """Inputs that must be spread alike, with the keys that suit all operators so far."""
    stateful: list[int] = field(default_factory=list)
    combined: int | None = None


def lay_out(plan: PhysicalPlan, single: Iterable[int] = ()) -> Layout:
    """Cut a plan into stages; the sources named in ``single`` need all their rows in one place."""
    return _Planner(plan, frozenset(single)).layout()


class _Planner:
    def __init__(self, plan: PhysicalPlan, single: frozenset[int]):
        self._plan = plan
        self._single = single
        self._stages: list[_Open] = []
        self._stage: list[int | None] = []  # per operator; None while any stage would do
        self._carried: list[Mapping[str, Key]] = []  # per operator: output column to its key

    def layout(self) -> Layout:
        for operator in self._plan.operators:
            self._place(operator)
        last = self._plan.result.index
        if not self._stages:
            self._stages.append(_Open())
        if self._stage[last] is None:
            self._stage[last] = len(self._stages) - 1
        tail = self._after_combined()
        return Layout(tuple(self._closed(number) for number in range(len(self._stages))), tail)

    # ---- placing ---------------------------------------------------------------------------

    def _place(self, operator: Operator) -> None:
        inputs = [self._stage[index] for index in operator.inputs]
        if operator.build is None:
            self._stage.append(None)
            names = operator.node.schema
            self._carried.append({name: frozenset({(operator.index, name)}) for name in names})
            return
        known = {stage for stage in inputs if stage is not None}
        if not operator.stateful:
            stage = max(known) if known else None  # over several stages: in the last of them
            self._stage.append(stage)
            self._carried.append(_through(operator, self._inside(operator, stage)))
            return
        fused = self._with_queues(operator, known) if len(known) > 1 else None
        stage = fused if fused is not None else max(known) if len(known) == 1 else self._new()
        if fused is None and not self._fuse(operator, stage):
            stage = self._new() if known and len(known) == 1 else stage
            if not self._fuse(operator, stage):
                self._stages[stage].single = True
        self._stages[stage].stateful.append(operator.index)
        self._stage.append(stage)
        self._carried.append(_through(operator, self._inside(operator, stage)))

    def _with_queues(self, operator: Operator, known: set[int]) -> int | None:
        """The stages of queues in front of an operator made one with it, if a key suits all."""
        stages = [self._stages[each] for each in sorted(known)]
        if not all(map(self._queues, stages)) or len({each.single for each in stages}) > 1:
            return None
        before = list(self._stages), list(self._stage)
        first, *others = sorted(known)
        self._stages[first] = _Open(
            stages[0].single,
            [group for each in stages for group in each.groups],
            [index for each in stages for index in each.stateful],
        )
        for number in reversed(others):
            del self._stages[number]
        numbers: dict[int | None, int | None] = {
            number: first if number in known else number - sum(each < number for each in others)
            for number in range(len(before[0]))
        }
        self._stage = [numbers.get(number) for number in self._stage]
        if self._fuse(operator, first):
            return first
        self._stages, self._stage = before
        return None

    def _queues(self, stage: _Open) -> bool:
        """Whether a stage holds update streams alone, right behind their sources."""
        entries = {each for members, _ in stage.groups for each in members}
        operators = self._plan.operators
        return all(operators[each].node.updates is not None for each in stage.stateful) and not any(
            operators[each].build for each in entries
        )

    def _new(self) -> int:
        self._stages.append(_Open())
        return len(self._stages) - 1

    def _inside(self, operator: Operator, stage: int | None) -> list[Mapping[str, Key]]:
        """The keys of each input's columns as the stage sees them."""
        carried: list[Mapping[str, Key]] = []
        for index in operator.inputs:
            if stage is not None and self._stage[index] not in (None, stage):
                schema = self._plan.operators[index].node.schema
                carried.append({name: frozenset({(index, name)}) for name in schema})
            else:
                carried.append(self._carried[index])
        return carried

    def _fuse(self, operator: Operator, number: int) -> bool:
        """Take an operator into a stage if a key suits it and all that are there."""
        stage = self._stages[number]
        feeds = frozenset(self._entries(operator.index, number))
        if stage.single or self._single & feeds:
            stage.single = stage.single or not stage.stateful
            return stage.single
        in_order = operator.ordered and self._ends(operator.index)
        if in_order and not (_lets_go_alike(operator) and self._alike(operator.index, number)):
            return False
        wanted = set(_wanted(operator, self._inside(operator, number)))
        met = [group for group in stage.groups if group[0] & feeds]
        for members, keys in met:
            wanted = {key for key in wanted if _restricted(key, members) in keys}
        wanted = {key for key in wanted if _covers(key, feeds) and self._type(key) is not None}
        if not wanted:
            return self._combine(operator, number, feeds, met)
        for group in met:
            stage.groups.remove(group)
        stage.groups.append((feeds.union(*(members for members, _ in met)), wanted))
        if in_order:
            stage.combined = operator.index
        return True

    def _combine(
        self,
        operator: Operator,
        number: int,
        feeds: frozenset[int],
        met: list[tuple[frozenset[int], set[Key]]],
    ) -> bool:
        stage = self._stages[number]
        if not self._ends(operator.index) or not self._alike(operator.index, number):
            return False
        if operator.ordered:
            if len(operator.inputs) > 1:
                return False  # rows of both have to meet
            if not met and any(self._plan.operators[each].build for each in feeds):
                return False  # rows of an earlier stage have no key to be spread by
        elif operator.name not in ("window", "group") or (
            isinstance(operator.node, nodes.WindowAggregateNode)
            and operator.node.attribute == SEQUENCE
        ):
            return False
        stage.combined = operator.index
        if not met:
            stage.groups.append((feeds, set()))
        return True

    def _ends(self, index: int) -> bool:
        """Whether only row-wise operators lie between an operator and the result."""
        while index != self._plan.result.index:
            consumers = self._plan.consumers(index)
            if len(consumers) != 1:
                return False
            following = self._plan.operators[consumers[0][0]]
            if following.stateful or len(following.inputs) != 1 or following.name == "stamp":
                return False
            index = following.index
        return not self._plan.consumers(index)

    def _alike(self, index: int, stage: int) -> bool:
        """Whether all buckets of a stage are told the same of an operator's inputs."""
        for each in self._plan.operators[index].inputs:
            operator = self._plan.operators[each]
            if operator.build is None or self._stage[each] not in (None, stage):
                continue
            if not _tells_alike(operator) or not self._alike(each, stage):
                return False
        return True

    def _entries(self, index: int, stage: int) -> list[int]:
        """The operators through whose rows a stage feeds an operator."""
        found: dict[int, None] = {}
        for each in self._plan.operators[index].inputs:
            operator = self._plan.operators[each]
            if operator.build is None or self._stage[each] not in (None, stage):
                found[each] = None
            else:
                found.update(dict.fromkeys(self._entries(each, stage)))
        return list(found)

    # ---- closing ---------------------------------------------------------------------------

    def _after_combined(self) -> tuple[int, ...]:
        combined = self._stages[-1].combined
        if combined is None:
            return ()
        tail = []
        while combined != self._plan.result.index:
            combined = self._plan.consumers(combined)[0][0]
            tail.append(combined)
        return tuple(tail)

    def _closed(self, number: int) -> Stage:
        stage = self._stages[number]
        exports = self._exports(number)
        members: dict[int, None] = {}
        entries: dict[int, None] = {}
        for index in exports:
            self._gather(index, number, members, entries)
        return Stage(
            number,
            tuple(sorted(members)),
            tuple(Edge(entry, self._key(stage, entry)) for entry in sorted(entries)),
            exports,
            stage.single or bool(self._single & entries.keys()),
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

    def _gather(
        self, index: int, number: int, members: dict[int, None], entries: dict[int, None]
    ) -> None:
        operator = self._plan.operators[index]
        if operator.build is None or self._stage[index] not in (None, number):
            entries[index] = None
            return
        members[index] = None
        for each in operator.inputs:
            self._gather(each, number, members, entries)

    def _key(self, stage: _Open, entry: int) -> tuple[tuple[str, pl.DataType], ...] | None:
        for members, keys in stage.groups:
            if entry in members and keys:
                ordered = sorted(self._by_group(keys) or keys, key=sorted)
                spread = []
                for key in ordered:
                    dtype = self._type(key)
                    assert dtype is not None
                    spread.append((next(name for at, name in key if at == entry), dtype))
                return tuple(spread)
        return None

    def _by_group(self, keys: set[Key]) -> set[Key]:
        """The keys that keep groups together whose promises serve everybody: what they say then
        has to be known where a group is, and nowhere else."""
        return {key for key in keys if all(self._names_group(*place) for place in key)}

    def _names_group(self, entry: int, column: str) -> bool:
        operator = self._plan.operators[entry]
        node = operator.node
        if operator.build is not None or not isinstance(node, nodes.SourceNode):
            return False
        linear = any(demand.linear for demand in self._plan.demands[entry].values())
        return column in node.spec.groups and not linear

    def _type(self, key: Key) -> pl.DataType | None:
        """The type in which a key's values are equal wherever they are; None if there is none."""
        kinds = {self._plan.operators[at].node.schema[name] for at, name in key}
        if all(kind.is_integer() for kind in kinds):
            return pl.Int64()
        if all(kind.is_numeric() and not kind.is_decimal() for kind in kinds):
            return pl.Float64()
        if all(kind == pl.String or isinstance(kind, pl.Categorical | pl.Enum) for kind in kinds):
            return pl.String()
        return kinds.pop() if len(kinds) == 1 else None


JOINS = ("join", "multijoin")
PAIRED = ("join", "newestjoin")
TOGETHER = ("multijoin", "obliviousjoin")
"""Joins of many inputs. What one that measures its inputs tells depends on rows."""
TELL_ALIKE = frozenset(
    {
        *("filter", "project", "apply", "unnumber"),
        *("union", "merge", "sort", "distinct", "group", "sliding"),
        *JOINS,
    }
)
"""Operators whose promises follow from promises alone, whatever rows they have."""


def _tells_alike(operator: Operator) -> bool:
    """Whether copies of an operator that are told the same tell the same."""
    node = operator.node
    if operator.name == "window" and isinstance(node, nodes.WindowAggregateNode):
        return isinstance(node.flush, Immediate) or not node.groups
    return operator.name in TELL_ALIKE and not _waits(operator)


def _lets_go_alike(operator: Operator) -> bool:
    """Whether copies of an order that are told the same let go of rows up to the same mark."""
    return not _waits(operator) or getattr(operator.node, "how", "inner") == "inner"


def _waits(operator: Operator) -> bool:
    """Whether rows may wait in front of a join. What it is told of them, and tells, then depends on
    which do; but pairs go by the promises alone."""
    ordering = operator.node.ordering if isinstance(operator.node, nodes.AnyJoin) else None
    return operator.name in JOINS and ordering is not None and ordering.order != "filter-order"


def _restricted(key: Key, members: frozenset[int]) -> Key:
    return frozenset(place for place in key if place[0] in members)


def _covers(key: Key, feeds: frozenset[int]) -> bool:
    """Whether a key says where the rows of every input go, and one place for each."""
    return {at for at, _ in key} == feeds and len(key) == len(feeds)


def _wanted(operator: Operator, carried: Sequence[Mapping[str, Key]]) -> list[Key]:
    """The keys that bring together what an operator has to."""
    node = operator.node
    if operator.name in PAIRED:
        assert isinstance(node, nodes.JoinNode | nodes.NewestJoinNode)
        pairs = [(carried[0].get(a), carried[1].get(b)) for a, b in node.on]
        return [left | right for left, right in pairs if left and right]
    if operator.name in TOGETHER:
        assert isinstance(node, nodes.MultiJoinNode)
        return [key for _, key in _keys_of_all(node, carried)]
    names = [name for name in operator.partition or () if all(name in each for each in carried)]
    return [frozenset().union(*(each[name] for each in carried)) for name in names]


def _through(operator: Operator, carried: Sequence[Mapping[str, Key]]) -> dict[str, Key]:
    """The keys of an operator's output columns: those it copies from its input."""
    node = operator.node
    if operator.name == "project":
        assert isinstance(node, nodes.ProjectNode)
        return {out: carried[0][name] for name, out in node.copied.items() if name in carried[0]}
    if operator.name in ("union", "merge", "update"):
        same = set(carried[0]).intersection(*carried[1:])
        return {name: frozenset().union(*(each[name] for each in carried)) for name in same}
    if operator.name in ("window", "session", "sliding", "group"):
        groups = operator.partition or ()
        return {name: carried[0][name] for name in groups if name in carried[0]}
    if operator.name in PAIRED:
        return _joined(operator, carried)
    if operator.name in TOGETHER:
        return _joined_together(operator, carried)
    if operator.name == "apply":
        return {}
    return dict(carried[0])


def _joined(operator: Operator, carried: Sequence[Mapping[str, Key]]) -> dict[str, Key]:
    """Only columns matched on are known to agree with where a pair is; a row without a partner
    has but those that are merged from both sides. A semi or anti join gives rows of the left where
    they are.
    """
    node = operator.node
    assert isinstance(node, nodes.JoinNode | nodes.NewestJoinNode)
    alone = isinstance(node, nodes.JoinNode) and node.how in ("left", "right", "full")
    found: dict[str, Key] = {}
    for left, right in node.on:
        pair = carried[0].get(left), carried[1].get(right)
        if not (pair[0] and pair[1]):
            continue
        both = pair[0] | pair[1]
        for name in (left, node.right_names[right]):
            if name in node.schema and (not alone or name in node.merged):
                found[name] = both
    return found


def _joined_together(operator: Operator, carried: Sequence[Mapping[str, Key]]) -> dict[str, Key]:
    """The columns of all inputs that are matched on."""
    node = operator.node
    assert isinstance(node, nodes.MultiJoinNode)
    found: dict[str, Key] = {}
    for names, key in _keys_of_all(node, carried):
        inside = (each[name] for each, name in zip(node.names, names, strict=True))
        found.update((node.merged.get(name, name), key) for name in inside)
    return found


def _keys_of_all(
    node: nodes.MultiJoinNode, carried: Sequence[Mapping[str, Key]]
) -> list[tuple[tuple[str, ...], Key]]:
    """The columns matched on whose values are where rows enter, for every input, with their key."""
    found = []
    for names in node.on:
        keys = [each.get(name) for each, name in zip(carried, names, strict=True)]
        if all(keys):
            found.append((names, frozenset().union(*(key for key in keys if key))))
    return found
