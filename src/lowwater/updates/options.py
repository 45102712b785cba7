"""The options of an update stream: its key, the order of service and what is given up under
load."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.errors import OptionError, Term
from lowwater.stream.duration import SECOND, Duration, nanoseconds, spell

Schedule = Literal["in-place", "fifo", "linecutting", "rare-first", "auto", "append", "shedding"]
SCHEDULES: tuple[Schedule, ...] = (
    *("in-place", "fifo", "linecutting", "rare-first", "auto"),
    *("append", "shedding"),
)
PLAIN: tuple[Schedule, ...] = ("append", "shedding")
"""The schedules that serve rows instead of keys: the baselines of update queues."""
Windows = Literal["lazy", "eager"]
WINDOWS: tuple[Windows, ...] = ("lazy", "eager")
Key = tuple[Hashable, ...]
FreshWithin = Duration | Mapping[Hashable, Duration]

UPDATE_KEY = Term("update_key=", "UPDATE KEY")
SCHEDULE = Term("schedule=", "SCHEDULE")
WEIGHTS = Term("weights=", "WEIGHTS")
BUDGET = Term("budget=", "BUDGET")
COMPLETE_WITHIN = Term("complete_within=", "COMPLETE WITHIN")
UPDATE_WINDOWS = Term("windows=", "WINDOWS")
EXPIRE = Term("expire=", "EXPIRE")
DELETE_WHEN = Term("delete_when=", "DELETE WHEN")
FRESH_WITHIN = Term("fresh_within=", "FRESH WITHIN")
OPTIONS = (
    *(UPDATE_KEY, SCHEDULE, WEIGHTS, BUDGET, COMPLETE_WITHIN, UPDATE_WINDOWS, EXPIRE),
    *(DELETE_WHEN, FRESH_WITHIN),
)
"""The options of an update stream, and the clauses for them."""


@dataclass(frozen=True)
class Deletion:
    """A condition on a row that deletes its key."""

    text: str
    condition: pl.Expr = field(compare=False, repr=False)
    columns: tuple[tuple[str, str | None], ...]
    """The columns of the condition, each with its name there and its name in the rows to which the
    condition is applied; None if these rows no longer have it."""

    def renamed(self, names: Mapping[str, str]) -> Deletion:
        """Return the condition after a projection; ``names`` maps columns to their new names."""
        columns = tuple((own, names.get(here) if here else None) for own, here in self.columns)
        return replace(self, columns=columns)

    @property
    def lost(self) -> list[str]:
        """Columns of the condition that the rows have no longer."""
        return [own for own, here in self.columns if here is None]

    def of(self, rows: pl.DataFrame) -> NDArray[np.bool_]:
        """Return true for each row that fulfils the condition; null does not."""
        given = rows.select(pl.col(here).alias(own) for own, here in self.columns if here)
        deletes = self.condition.fill_null(value=False)
        found: NDArray[np.bool_] = given.select(deletes.alias("deletes")).to_series().to_numpy()
        return found


@dataclass(frozen=True)
class Updates:
    """An update key, and the order in which its updates are worked on when there are too many."""

    key: tuple[str, ...]
    """The columns whose values name the thing that a row updates; without any, each row replaces
    the one before."""
    schedule: Schedule = "in-place"
    """The key served next: the one that has waited longest (in-place), the one whose newest row has
    waited longest (fifo), keys that are slow by the paper's inequality before others (linecutting),
    keys that are rarely updated before others (rare-first), the one whose service is worth most
    (auto). Two baselines serve rows instead of keys: all rows in the order of arrival
    (append), or the same with some rows dropped at random (shedding)."""
    weights: tuple[tuple[Key, float], ...] = ()
    """Weights of the staleness of single keys."""
    other_weight: float = 1.0
    """Weight of the staleness of every other key."""
    budget: int | None = None
    """Nanoseconds of work in a batch on Spark; None chooses those that keep results freshest."""
    complete_within: int | None = None
    """Nanoseconds: no row is given up while none has to wait longer than this. With None a waiting
    row is given up as soon as a newer one of its key arrives."""
    windows: Windows = "lazy"
    """The window of a key that is shown next: the newest complete one (lazy) or the newest that
    began (eager)."""
    expire: int | None = None
    """Nanoseconds of stream time after its newest row at which a key is forgotten; None for
    never."""
    delete_when: str | None = None
    """The text of the condition on a row that deletes its key; None if no row does."""
    deletion: Deletion | None = None
    """The compiled condition, over the columns of the rows it is applied to; None until it is
    checked."""
    targets: tuple[tuple[Key, int], ...] = ()
    """The staleness in nanoseconds that is asked for of single keys."""
    other_target: int | None = None
    """The staleness that is asked for of every other key; None for any."""

    @property
    def has_targets(self) -> bool:
        """True if some staleness is asked for."""
        return bool(self.targets) or self.other_target is not None

    @property
    def forgets(self) -> bool:
        """True if keys are ever forgotten."""
        return self.expire is not None or self.delete_when is not None

    def describe(self) -> str:
        """Return the options as text for explain."""
        parts: list[str] = [self.schedule]
        if self.weights:
            parts.append(f"{len(self.weights)} keys weighted")
        if self.complete_within is not None:
            parts.append(f"complete within {spell(self.complete_within)}")
        if self.expire is not None:
            parts.append(f"keys expire after {spell(self.expire)}")
        if self.delete_when is not None:
            parts.append(f"deleted when {self.delete_when}")
        if self.other_target is not None:
            parts.append(f"fresh within {spell(self.other_target)}")
        if self.targets:
            parts.append(f"{len(self.targets)} keys with targets of staleness")
        return ", ".join(parts)


def updates_of(
    key: str | Sequence[str],
    schedule: Schedule | None = None,
    weights: Mapping[Hashable, float | Duration] | None = None,
    budget: Duration | None = None,
    complete_within: Duration | None = None,
    windows: Windows | None = None,
    expire: Duration | None = None,
    delete_when: str | None = None,
    fresh_within: FreshWithin | None = None,
) -> Updates:
    """Return the checked options from those that a user gives."""
    columns = (key,) if isinstance(key, str) else tuple(key)
    if len(set(columns)) != len(columns):
        raise OptionError(UPDATE_KEY, f" names a column twice: {', '.join(columns)}")
    if schedule is not None and schedule not in SCHEDULES:
        known = ", ".join(map(repr, SCHEDULES))
        raise OptionError(SCHEDULE, f" is one of {known}, not {schedule!r}")
    if windows is not None and windows not in WINDOWS:
        raise OptionError(UPDATE_WINDOWS, f" is 'lazy' or 'eager', not {windows!r}")
    chosen = schedule or "in-place"
    own = SCHEDULE.given(chosen)
    if weights and chosen in PLAIN:
        raise OptionError(WEIGHTS, " are for queues of keys, and ", own, " is a queue of rows")
    if complete_within is not None and chosen in PLAIN:
        raise OptionError(
            COMPLETE_WITHIN,
            " sets when rows are given up for newer ones, and ",
            own,
            " never gives rows up",
        )
    for name, given in ((EXPIRE, expire), (DELETE_WHEN, delete_when)):
        if given is not None and chosen in PLAIN:
            raise OptionError(name, " is for queues of keys, and ", own, " is a queue of rows")
    if delete_when is not None and not (isinstance(delete_when, str) and delete_when.strip()):
        raise OptionError(
            DELETE_WHEN,
            " is a condition on a row whose key is gone,"
            f" \"status = 'closed'\" for example, not {delete_when!r}",
        )
    counted, others = _weights(weights or {}, len(columns))
    targets, other_target = _targets(fresh_within, len(columns))
    return Updates(
        columns,
        chosen,
        weights=counted,
        other_weight=others,
        budget=_above_zero(budget, BUDGET),
        complete_within=_above_zero(complete_within, COMPLETE_WITHIN),
        windows=windows or "lazy",
        expire=_above_zero(expire, EXPIRE),
        delete_when=delete_when,
        targets=targets,
        other_target=other_target,
    )


def _targets(
    given: FreshWithin | None, columns: int
) -> tuple[tuple[tuple[Key, int], ...], int | None]:
    """Return the targets of single keys, and that of all other keys, in nanoseconds."""
    if given is None:
        return (), None
    if not isinstance(given, Mapping):
        return (), _positive(given, FRESH_WITHIN)
    if not given:
        raise OptionError(
            FRESH_WITHIN,
            " names no key; give one length of time for all keys, or some for single keys,"
            " {'GOOG': '1 second'}",
        )
    found: dict[Key, int] = {}
    for name, length in given.items():
        key = name if isinstance(name, tuple) else (name,)
        if len(key) != columns:
            raise OptionError(FRESH_WITHIN, f": {name!r} names no key of {columns} column(s)")
        try:
            found[key] = _positive(length, f"{FRESH_WITHIN}: the target of {name!r}")
        except OptionError as error:
            raise OptionError(*error.parts, about=FRESH_WITHIN) from None
    return tuple(found.items()), None


def _above_zero(length: Duration | None, what: Term) -> int | None:
    return None if length is None else _positive(length, what)


def _positive(length: Duration, what: str | Term) -> int:
    found = nanoseconds(length, what)
    if found <= 0:
        raise OptionError(what, " is a length of time above zero, '1 second' for example")
    return found


def _weights(
    given: Mapping[Hashable, float | Duration], columns: int
) -> tuple[tuple[tuple[Key, float], ...], float]:
    """Return the weights by key, and that of all other keys.

    A weight given as a time is the period in which somebody looks at the key: one that is looked at
    twice as often has twice the weight, and a key that is not named has the least one.
    """
    if not isinstance(given, Mapping):
        raise OptionError(
            WEIGHTS,
            " maps keys to numbers, {'GOOG': 60, 'GM': 1}, or to how often each is looked"
            f" at, {{'GOOG': '1 minute', 'GM': '1 hour'}}, not {given!r}",
        )
    numbers = {key: isinstance(value, int | float) for key, value in given.items()}
    if len(set(numbers.values())) > 1:
        raise OptionError(WEIGHTS, " are all numbers or all lengths of time")
    found = []
    for name, value in given.items():
        key = name if isinstance(name, tuple) else (name,)
        if len(key) != columns:
            raise OptionError(WEIGHTS, f": {name!r} names no key of {columns} column(s)")
        if isinstance(value, int | float) and not isinstance(value, bool):
            weight = float(value)
        else:
            try:
                weight = SECOND / _positive(value, f"{WEIGHTS}: the period of {name!r}")
            except OptionError as error:
                raise OptionError(*error.parts, about=WEIGHTS) from None
        if not 0 < weight < float("inf"):
            raise OptionError(WEIGHTS, f": {name!r} has weight {value!r}; weights are above zero")
        found.append((key, weight))
    rarest = min((weight for _, weight in found), default=1.0)
    return tuple(found), 1.0 if all(numbers.values()) else rarest
