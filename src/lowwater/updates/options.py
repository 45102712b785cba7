"""What a user may say of an update stream: its key, and what waits in which order under load."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lowwater.errors import OptionError
from lowwater.stream.duration import SECOND, Duration, nanoseconds, spell

Schedule = Literal["in-place", "fifo", "linecutting", "auto", "append", "shedding"]
SCHEDULES: tuple[Schedule, ...] = (
    *("in-place", "fifo", "linecutting", "auto"),
    *("append", "shedding"),
)
PLAIN: tuple[Schedule, ...] = ("append", "shedding")
"""Queues of rows and not of keys: what update queues are measured by."""
Windows = Literal["lazy", "eager"]
WINDOWS: tuple[Windows, ...] = ("lazy", "eager")
Key = tuple[Hashable, ...]


@dataclass(frozen=True)
class Updates:
    """An update key and how its updates are worked on when there are too many."""

    key: tuple[str, ...]
    """The columns whose values say which row a row replaces; none: each replaces the last."""
    schedule: Schedule = "in-place"
    """Which key is next: the one that waits longest (in-place), the one whose newest row waits
    longest (fifo), slow updaters before others (linecutting), the one whose service is worth most
    (auto). All rows in their order (append), and these with a share dropped at random (shedding),
    are what the others are measured by."""
    weights: tuple[tuple[Key, float], ...] = ()
    """How much the staleness of single keys counts."""
    other_weight: float = 1.0
    """How much that of all other keys counts."""
    budget: int | None = None
    """Nanoseconds of work that a batch on Spark may hold; None: what keeps answers freshest."""
    complete_within: int | None = None
    """As long as no row has to wait longer, all are worked on and none is given up."""
    windows: Windows = "lazy"
    """Which window a key shows next: the newest that is complete, or the newest that began."""

    def weight_of(self, key: Key) -> float:
        """How much the staleness of a key counts."""
        return dict(self.weights).get(key, self.other_weight)

    def describe(self) -> str:
        """In words, for people."""
        parts: list[str] = [self.schedule]
        if self.weights:
            parts.append(f"{len(self.weights)} keys weighted")
        if self.complete_within is not None:
            parts.append(f"complete within {spell(self.complete_within)}")
        return ", ".join(parts)


def updates_of(
    key: str | Sequence[str],
    schedule: Schedule | None = None,
    weights: Mapping[Hashable, float | Duration] | None = None,
    budget: Duration | None = None,
    complete_within: Duration | None = None,
    windows: Windows | None = None,
) -> Updates:
    """The options as a user gives them, checked."""
    columns = (key,) if isinstance(key, str) else tuple(key)
    if len(set(columns)) != len(columns):
        raise OptionError(f"update_key= names a column twice: {', '.join(columns)}")
    if schedule is not None and schedule not in SCHEDULES:
        known = ", ".join(map(repr, SCHEDULES))
        raise OptionError(f"schedule= is one of {known}, not {schedule!r}")
    if windows is not None and windows not in WINDOWS:
        raise OptionError(f"windows= is 'lazy' or 'eager', not {windows!r}")
    chosen = schedule or "in-place"
    if weights and chosen in PLAIN:
        raise OptionError(f"weights= are for queues of keys, and schedule={chosen!r} is none")
    if complete_within is not None and chosen in PLAIN:
        raise OptionError(
            f"complete_within= says when rows are given up for newer ones, and"
            f" schedule={chosen!r} never does so"
        )
    counted, others = _weights(weights or {}, len(columns))
    return Updates(
        columns,
        chosen,
        counted,
        others,
        None if budget is None else _positive(budget, "budget="),
        None if complete_within is None else _positive(complete_within, "complete_within="),
        windows or "lazy",
    )


def _positive(length: Duration, what: str) -> int:
    found = nanoseconds(length, what)
    if found <= 0:
        raise OptionError(f"{what} is a length of time above zero, '1 second' for example")
    return found


def _weights(
    given: Mapping[Hashable, float | Duration], columns: int
) -> tuple[tuple[tuple[Key, float], ...], float]:
    """Weights by key. Lengths of time say how often a key is looked at: a key that is looked at
    twice as often counts twice, and keys that are not named as much as the rarest that is."""
    if not isinstance(given, Mapping):
        raise OptionError(
            "weights= maps keys to numbers, {'GOOG': 60, 'GM': 1}, or to how often each is looked"
            f" at, {{'GOOG': '1 minute', 'GM': '1 hour'}}, not {given!r}"
        )
    numbers = {key: isinstance(value, int | float) for key, value in given.items()}
    if len(set(numbers.values())) > 1:
        raise OptionError("weights= are all numbers or all lengths of time")
    found = []
    for name, value in given.items():
        key = name if isinstance(name, tuple) else (name,)
        if len(key) != columns:
            raise OptionError(f"weights=: {name!r} names no key of {columns} column(s)")
        if isinstance(value, int | float) and not isinstance(value, bool):
            weight = float(value)
        else:
            weight = SECOND / _positive(value, f"weights=: the period of {name!r}")
        if not 0 < weight < float("inf"):
            raise OptionError(f"weights=: {name!r} has weight {value!r}; weights are above zero")
        found.append((key, weight))
    rarest = min((weight for _, weight in found), default=1.0)
    return tuple(found), 1.0 if all(numbers.values()) else rarest
