"""A metric: the declaration of a number or text that an operator reports about its work.

Each metric is declared once, beside the kernel that reports it. The declaration holds everything
that a view needs: the name that never changes, the type, the unit, the words for people, and how
the values of several copies of an operator combine. A kernel returns :class:`Readings`, the values
by metric; a metric that a kernel does not measure is not in them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Generic, Literal, Self, TypeVar, get_type_hints

V = TypeVar("V", int, float, str)
Value = int | float | str
Unit = Literal[
    "rows", "bytes", "seconds", "keys", "windows", "share", "rows/s", "count", "state", "text"
]
"""The unit of a value. A text has the unit "state" if it is one of a few words, else "text"."""


class Rule(ABC):
    """The rule by which values of several copies of an operator, one a bucket, combine to one."""

    exact = True
    """True if the combined value always equals that of one copy with all the rows; False if it may
    depend on how the rows are spread over the copies."""

    @abstractmethod
    def combine(self, metric: Metric[Any], parts: Sequence[Readings]) -> Value:
        """Return the value of all copies; every part has a value of the metric."""


def _typed(metric: Metric[Any], value: Any) -> Value:
    typed: Value = metric.kind(value)
    return typed


@dataclass(frozen=True)
class Sum(Rule):
    """The sum over the copies."""

    exact: bool = True

    def combine(self, metric: Metric[Any], parts: Sequence[Readings]) -> Value:
        """Return the sum."""
        return _typed(metric, sum(part[metric] for part in parts))


@dataclass(frozen=True)
class Max(Rule):
    """The greatest value of a single copy.

    The peak of all copies together is at least the greatest peak of a copy and at most the sum of
    the peaks. The copies reach their peaks at different moments, so the sum may never have been
    reached, and the greatest is reported.
    """

    exact: bool = True

    def combine(self, metric: Metric[Any], parts: Sequence[Readings]) -> Value:
        """Return the maximum."""
        return _typed(metric, max(part[metric] for part in parts))


@dataclass(frozen=True)
class Mean(Rule):
    """The mean, in which each copy counts as much as its value of the metric ``weight``."""

    weight: Metric[Any]
    exact: bool = False

    def combine(self, metric: Metric[Any], parts: Sequence[Readings]) -> Value:
        """Return the weighted mean; if all weights are 0, the plain one."""
        weights = [part.get(self.weight) or 0 for part in parts]
        if not sum(weights):
            weights = [1] * len(parts)
        whole = sum(part[metric] * weight for part, weight in zip(parts, weights, strict=True))
        return _typed(metric, whole / sum(weights))


@dataclass(frozen=True)
class Ratio(Rule):
    """The share of the sum of ``part`` in the sum of ``part`` and ``rest``; 1 if both are 0."""

    part: Metric[Any]
    rest: Metric[Any]

    def combine(self, metric: Metric[Any], parts: Sequence[Readings]) -> Value:
        """Return the share."""
        part, rest = (sum(each[one] for each in parts) for one in (self.part, self.rest))
        return _typed(metric, part / (part + rest) if part + rest else 1.0)


@dataclass(frozen=True)
class Texts(Rule):
    """The text, if all copies have the same one.

    Otherwise it is each text with the number of its buckets, the most frequent first.
    """

    def combine(self, metric: Metric[Any], parts: Sequence[Readings]) -> Value:
        """Return the text."""
        counts = Counter(part[metric] for part in parts).most_common()
        if len(counts) == 1:
            return _typed(metric, counts[0][0])
        of = len(parts)
        return "; ".join(f"{text} ({count} of {of} buckets)" for text, count in counts)


@dataclass(frozen=True, slots=True)
class Metric(Generic[V]):
    """The declaration of one reported value. Two metrics are the same if their names are, and the
    inputs they are about."""

    name: str
    """The identifier, the same in all versions: in saved metrics, in JSON, and after ``lowwater_``
    in Prometheus."""
    kind: type[V] = field(compare=False)
    unit: Unit = field(compare=False)
    rule: Rule = field(compare=False, repr=False)
    words: str = field(compare=False)
    """The name for people."""
    help: str = field(compare=False, repr=False)
    """One sentence: what the value is."""
    key: str = field(default="", compare=False, repr=False)
    """The key in ``OperatorMetrics.about``, if it is not the words."""
    total: bool = field(default=False, compare=False, repr=False)
    """True if the value only grows: a counter in Prometheus."""
    inputs: tuple[int, ...] = ()
    """The inputs of the operator that the value is about, numbered from 0: one, or two for a value
    of the first relative to the second. Empty if the value is about the operator as a whole."""

    def of(self, *inputs: int) -> Self:
        """Return this metric of one input, or of a pair of inputs."""
        return replace(self, inputs=inputs)

    @property
    def id(self) -> str:
        """The name with the inputs: ``join_held_rows[0]``, ``join_lag_rows[0,1]``."""
        return f"{self.name}[{','.join(map(str, self.inputs))}]" if self.inputs else self.name

    @property
    def label(self) -> str:
        """The key in ``OperatorMetrics.about``: ``held rows[0]``, ``lag[0→1]``."""
        words = self.key or self.words
        return f"{words}[{'→'.join(map(str, self.inputs))}]" if self.inputs else words


def parts_of_id(id_: str) -> tuple[str, tuple[int, ...]]:
    """Return the name and the inputs in a :attr:`Metric.id`."""
    name, _, inputs = id_.rstrip("]").partition("[")
    return name, tuple(int(each) for each in inputs.split(",") if each)


class Readings(Mapping[Metric[Any], Any]):
    """Values by metric, each of the type that its metric declares; None stands for no value."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[Metric[Any], Value | None] | None = None):
        given = {} if values is None else values
        self._values = {each: each.kind(v) for each, v in given.items() if v is not None}

    def __getitem__(self, metric: Metric[V]) -> V:
        value: V = self._values[metric]
        return value

    def __iter__(self) -> Iterator[Metric[Any]]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __or__(self, others: Mapping[Metric[Any], Value | None]) -> Readings:
        return Readings({**self._values, **others})

    def __repr__(self) -> str:
        return f"Readings({self.about})"

    @property
    def about(self) -> dict[str, Value]:
        """The values by the words for them."""
        return {metric.label: value for metric, value in self._values.items()}

    def plain(self) -> dict[str, Value]:
        """Return the values by :attr:`Metric.id`, for JSON."""
        return {metric.id: value for metric, value in self._values.items()}


def combined(parts: Sequence[Readings]) -> Readings:
    """Return the readings of all copies of an operator, from those of each, by the rules of the
    metrics."""
    metrics = dict.fromkeys(metric for part in parts for metric in part)
    return Readings(
        {each: each.rule.combine(each, [p for p in parts if each in p]) for each in metrics}
    )


def total(
    name: str, words: str, help_: str, unit: Unit = "rows", *, exact: bool = True
) -> Metric[int]:
    """Return a metric that counts events since the run began, summed over copies."""
    return Metric(name, int, unit, Sum(exact), words, help_, total=True)


def size(
    name: str, words: str, help_: str, unit: Unit = "rows", *, key: str = "", exact: bool = True
) -> Metric[int]:
    """Return a metric of the present amount of something, summed over copies."""
    return Metric(name, int, unit, Sum(exact), words, help_, key)


def peak(name: str, words: str, help_: str, unit: Unit = "rows", *, key: str = "") -> Metric[int]:
    """Return a metric of the greatest amount of something at any time, in any one bucket."""
    return Metric(name, int, unit, Max(exact=False), words, help_, key)


def seconds(name: str, words: str, help_: str) -> Metric[float]:
    """Return a metric of a length of time; the longest of several copies is reported."""
    return Metric(name, float, "seconds", Max(), words, help_)


def share(name: str, words: str, help_: str) -> Metric[float]:
    """Return a metric of a share; the largest of several copies is reported."""
    return Metric(name, float, "share", Max(), words, help_)


@cache
def declared(kind: type) -> Mapping[str, Metric[Any]]:
    """Return the metrics with which the fields of a class are annotated, by field."""
    hints = get_type_hints(kind, include_extras=True)
    extras = ((name, getattr(hint, "__metadata__", ())) for name, hint in hints.items())
    return {name: each for name, found in extras for each in found if isinstance(each, Metric)}


def readings_of(value: object) -> Readings:
    """Return the values of an object's fields by the metrics with which these are annotated."""
    kind: Any = type(value)
    return Readings({each: getattr(value, name) for name, each in declared(kind).items()})


STRATEGY = Metric("strategy", str, "state", Texts(), "strategy", "The strategy in force.")
REASON = Metric(
    "strategy_reason", str, "text", Texts(), "because", "Why that strategy is in force."
)
SWITCHES = total(
    "strategy_switches",
    "switches",
    "How often the strategy changed, over all buckets; absent where it cannot change.",
    "count",
)
