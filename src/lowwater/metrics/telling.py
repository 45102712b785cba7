"""What single operators tell of a run, in words."""

from __future__ import annotations

from dataclasses import dataclass

from lowwater.joins.oblivious.estimates import ACCURACY, LATE_ROWS
from lowwater.joins.oblivious.estimates import GIVEN_UP as ROWS_GIVEN_UP
from lowwater.metrics.values import OperatorMetrics
from lowwater.operators.metric import REASON, STRATEGY, SWITCHES
from lowwater.updates.queueing import GIVEN_UP, SHOWN, WAITING


@dataclass(frozen=True)
class JoinProgress:
    """A join without a window, and what it gave up."""

    title: str
    accuracy: float
    """The share of results that was found, estimated."""
    late_rows: int
    given_up_rows: int

    @classmethod
    def of(cls, operator: OperatorMetrics) -> JoinProgress | None:
        """That of an operator, if it is such a join."""
        found = operator.readings
        if ACCURACY not in found:
            return None
        return cls(operator.title, found[ACCURACY], found[LATE_ROWS], found[ROWS_GIVEN_UP])

    @property
    def words(self) -> str:
        """In words."""
        lost = [f"{self.late_rows:,} rows came too late for it"] if self.late_rows else []
        if self.given_up_rows:
            lost.append(f"{self.given_up_rows:,} had no place in memory")
        if not lost or self.accuracy == 1:
            return f"{self.title}: all results found"
        share = f"about {self.accuracy * 100:.5g} % of results found"
        return f"{self.title}: {share}; {', '.join(lost)}"


@dataclass(frozen=True)
class UpdateProgress:
    """The queue of an update stream: how fresh what it shows is, and what that took."""

    title: str
    keys: int
    staleness_seconds: float
    """How long what is shown of a key has been out of date, on average over keys and time."""
    stalest_key: tuple[object, ...]
    stalest_seconds: float
    """The same of the key of which it is most."""
    waiting: int
    given_up: int
    """Rows, or windows, that newer ones took the place of."""
    of_windows: bool

    @classmethod
    def of(cls, operator: OperatorMetrics) -> UpdateProgress | None:
        """That of an operator, if it is such a queue and something waited in it."""
        told = operator.staleness
        if told is None or not told.keys:
            return None
        key, worst = next(iter(told.by_key.items()), ((), None))
        return cls(
            operator.title,
            told.keys,
            told.application,
            key,
            0.0 if worst is None else worst.application,
            operator.readings[WAITING],
            operator.readings[GIVEN_UP],
            SHOWN in operator.readings,
        )

    @property
    def words(self) -> str:
        """In words."""
        worst = ", ".join(map(str, self.stalest_key))
        stale = f"{self.staleness_seconds:.3g} s out of date on average"
        if self.keys > 1:
            stale += f" (most: {worst}, {self.stalest_seconds:.3g} s)"
        things = "windows" if self.of_windows else "rows"
        gone = f"{self.given_up:,} {things} given up for newer ones"
        return f"{self.title}: {self.keys:,} keys, {stale}; {gone}, {self.waiting:,} wait"


def choice(operator: OperatorMetrics) -> str | None:
    """Which strategy an operator that may change it chose, and why; None for others."""
    found = operator.readings
    if SWITCHES not in found:
        return None
    return f"{operator.title}: {found[STRATEGY]}, {found[REASON]}"
