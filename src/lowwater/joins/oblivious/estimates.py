"""Estimates about the inputs of a window-oblivious join: disorder, lag, multiplicity, lost results.

The *lag* of an input ahead of another one is the number of its rows beyond the other's bound, less
the rows that come during the other's disorder. If it has no such rows, it is behind, and its lag is
minus the rows of the other input that it has not reached (WO-Join §3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lowwater.joins.oblivious.disorder import DisorderEstimate, Ticks
from lowwater.joins.oblivious.lost_results import LostResults
from lowwater.joins.oblivious.memory_model import InputTraits, MemoryNeeds
from lowwater.joins.oblivious.options import Oblivious
from lowwater.joins.oblivious.stored_rows import StoredRows
from lowwater.joins.shape import KINDS, JoinKind
from lowwater.operators.metric import Max, Mean, Metric, Ratio, Readings, Sum, share, size, total

CAREFUL = 2
"""Safety factor: disorder is estimated for a share of lost results that is this many times smaller
than the allowed one."""
OFTEN = 4
"""Multiplicity is counted again when one in ``OFTEN`` held rows has come since the last count."""
FEW = 64
"""Least number of rows between two such counts."""


FOUND = total("join_results_found", "results found", "Results that left the join.")
LOST = Metric(
    "join_results_lost",
    float,
    "rows",
    Sum(exact=False),
    "results lost",
    "Results that were not found, counted or estimated.",
)
LOST_MARGIN = Metric(
    "join_results_lost_margin",
    float,
    "rows",
    Sum(exact=False),
    "results lost margin",
    "Number of results by which the estimate of lost results may be wrong.",
)
ACCURACY = Metric(
    "join_accuracy",
    float,
    "share",
    Ratio(FOUND, LOST),
    "accuracy",
    "The share of the results that was found.",
)
ACCURACY_ASKED = share(
    "join_accuracy_asked",
    "accuracy asked for",
    "The share of the results that accuracy= sets, the same in all buckets.",
)
ACCURACY_EXPECTED = Metric(
    "join_accuracy_expected",
    float,
    "share",
    Mean(FOUND),
    "expected accuracy",
    "The share of the results that can be found with the rows held now.",
)
LATE_ROWS = total(
    "join_late_rows",
    "late rows",
    "Rows that came after rows that could match them were dropped.",
    exact=False,
)
GIVEN_UP = total(
    "join_given_up_rows",
    "rows given up",
    "Rows dropped before they matched anything, because memory was full.",
    exact=False,
)
RATE = Metric(
    "join_input_rate", float, "rows/s", Sum(exact=False), "rows/s", "Rows of an input in a second."
)
SCRAMBLING = size(
    "join_scrambling_factor",
    "scrambling factor",
    "The most rows by which a row of an input is out of order; summed over buckets.",
    exact=False,
)
MULTIPLICITY = Metric(
    "join_multiplicity",
    int,
    "rows",
    Max(),
    "multiplicity",
    "The most rows of an input that came together with one value.",
)
PREDICTED = size(
    "join_predicted_rows",
    "predicted rows",
    "Rows of an input that the model predicts the join to hold.",
    exact=False,
)
LAG = size(
    "join_lag_rows",
    "lag",
    "Number of its rows by which an input is ahead of another one.",
    exact=False,
)
HELD = size(
    "join_held_rows",
    "held rows",
    "Rows of an input that the join holds in memory.",
    exact=False,
)
ON_DISK = size(
    "join_disk_rows",
    "rows on disk",
    "Rows of an input that wait on disk.",
    exact=False,
)


class InputEstimates:
    """The estimates of all inputs of a join; each list has one entry for each input."""

    def __init__(
        self,
        options: Oblivious,
        windows: Sequence[int],
        ticks_per_second: int,
        kind: JoinKind = KINDS["inner"],
        copies: int = 1,
    ):
        self._windows, ports = tuple(windows), len(windows)
        missing = (1 - options.accuracy) / ports / CAREFUL
        known = options.disorder or (None,) * ports
        self.disorders = [DisorderEstimate(missing, each, ticks_per_second) for each in known]
        self.multiplicity = [1] * ports
        self._late = [0] * ports
        """Number of late rows: rows below the bound to which another input was dropped."""
        self._given_up = [0] * ports
        """Number of rows given up because memory was full, before all inputs had reached them."""
        self._required = options.accuracy
        self.losses = LostResults(ports, copies, bool(kind.tracked))
        """Results found, and results lost."""
        self._fresh = 0  # rows since multiplicity was counted last
        self._batch: list[list[Ticks]] = [[] for _ in known]
        """Ticks of the rows of the current batch."""

    def reset(self) -> None:
        """Reset all estimates; the counts of results found and lost stay."""
        self.disorders = [each.fresh() for each in self.disorders]
        self.multiplicity = [1] * len(self.disorders)
        self.losses.reset()

    def take(self, port: int, ticks: Ticks, below: int) -> None:
        """Add rows to the current batch; rows below ``below`` are late."""
        self.add_late(port, int((ticks < below).sum()))
        self._batch[port].append(ticks)
        self._fresh += len(ticks)

    def add_late(self, port: int, rows: int) -> None:
        """Count late rows of an input."""
        self._late[port] += rows

    def add_given_up(self, port: int, rows: int) -> None:
        """Count rows of an input that were given up."""
        self._given_up[port] += rows

    def record_repeats(self, ports: Iterable[int]) -> None:
        """Record that some inputs have a value twice."""
        for port in ports:
            self.multiplicity[port] = max(2, self.multiplicity[port])

    def measure(self, now: int) -> None:
        """Update the estimates with the rows of the batch; ``now`` is in clock nanoseconds."""
        for port, ticks in enumerate(self._batch):
            if ticks:
                together = np.concatenate(ticks)
                self.disorders[port].observe(together, now)
                if len(together) > 1:
                    self._count(port, together)
                ticks.clear()

    @property
    def unique(self) -> bool:
        """True if equal times match, disorder is measured and no value was seen twice in an
        input."""
        measured = all(estimate.measures for estimate in self.disorders) and not any(self._windows)
        return measured and max(self.multiplicity) == 1

    @property
    def tops(self) -> list[int]:
        """The greatest value of each input so far, including the current batch."""
        return [
            max(estimate.top, *(int(each.max()) for each in ticks)) if ticks else estimate.top
            for estimate, ticks in zip(self.disorders, self._batch, strict=True)
        ]

    def is_count_due(self, held: int) -> bool:
        """Return true if enough rows have come to count multiplicity again; ``held`` are kept."""
        return self._fresh >= max(FEW, held // OFTEN)

    def count_stored(self, stored: StoredRows) -> None:
        """Count the multiplicity of all rows in memory."""
        self._fresh = 0
        for port in range(len(self.disorders)):
            self._count(port, stored.values(port))

    def _count(self, port: int, ticks: Ticks) -> None:
        """Raise an input's multiplicity to the most equal values among some rows."""
        if len(ticks):
            most = int(np.unique(ticks, return_counts=True)[1].max())
            self.multiplicity[port] = max(self.multiplicity[port], most)

    def needs(
        self, stored: StoredRows, now: int, reading: bool = True, all_rows: bool = False
    ) -> MemoryNeeds | None:
        """Return the rows each input needs to keep, by the model; None before there are estimates.

        If ``reading`` is False no stored row is read: counts are then exact to a slice only. If
        ``all_rows``, rows that have left memory for lack of it count for the lag as well.
        """
        if any(estimate.factor is None for estimate in self.disorders):
            return None
        rates = [estimate.rate(now) for estimate in self.disorders]
        if not all(rates):
            rates = [float(max(1, estimate.rows)) for estimate in self.disorders]
        reading = reading and not all_rows
        values = [stored.values(port) for port in range(len(rates))] if reading else []

        def not_below(port: int, value: int) -> int:
            if all_rows:
                return self.disorders[port].rows_since(value)
            if not reading:
                return stored.rows_from(port, value)
            return int((values[port] >= value).sum())

        far = [0 if all_rows else each.rows for each in stored.spilled]
        tops = self.tops
        traits = tuple(
            InputTraits(
                rates[port] or 1.0,
                min(estimate.factor or 0, estimate.rows),
                self.multiplicity[port],
                reach=not_below(port, estimate.top - window) if window > 0 else 0,
            )
            for port, (estimate, window) in enumerate(
                zip(self.disorders, self._windows, strict=True)
            )
        )

        def lag(one: int, other: int) -> float:
            """Return the rows by which one input is ahead of another; below 0 if it is behind."""
            own, mate = traits[one], traits[other]
            ratio = own.rate / mate.rate
            ahead = not_below(one, self.disorders[other].bound) + far[one]
            if not ahead:
                since = not_below(other, tops[one]) + far[other] - mate.disorder
                ahead = -round(max(0, since) * ratio)
            return ahead - ratio * mate.disorder

        ports = range(len(traits))
        lags = [tuple(lag(one, other) for other in ports) for one in ports]
        return MemoryNeeds(traits, tuple(lags))

    def shortfall(self, results: float, lost: float, ended: bool) -> list[str]:
        """Return a warning if too many results are lost, else nothing."""
        note = shortfall(results, lost, self._required, ended)
        return [] if note is None else [note]

    def metrics(
        self,
        stored: StoredRows,
        now: int,
        counts: tuple[float, float, float],
        reading: bool = True,
    ) -> Readings:
        """Return the metrics of the join; inputs are numbered from 0.

        ``counts`` has the results found, those lost, and the margin of error of these.
        """
        results, lost, margin = counts
        found: dict[Metric[Any], int | float | None] = {
            ACCURACY: results / (results + lost) if results + lost else 1.0,
            ACCURACY_ASKED: self._required,
            FOUND: round(results),
            LOST: lost,
            LOST_MARGIN: margin,
            ACCURACY_EXPECTED: float(np.prod([estimate.expected for estimate in self.disorders])),
            LATE_ROWS: sum(self._late),
            GIVEN_UP: sum(self._given_up),
        }
        needs, ports = self.needs(stored, now, reading), range(len(self.disorders))
        for port, estimate in enumerate(self.disorders):
            found[RATE.of(port)] = estimate.rate(now)
            found[SCRAMBLING.of(port)] = estimate.scrambling
            found[MULTIPLICITY.of(port)] = self.multiplicity[port]
            if needs is not None:
                found[PREDICTED.of(port)] = needs.buffer(port)
                for other in ports:
                    if other != port:
                        found[LAG.of(port, other)] = round(needs.lags[port][other])
            found[HELD.of(port)] = stored.held(port)
            found[ON_DISK.of(port)] = stored.spilled[port].rows
        return Readings(found)

    def snapshot(self) -> dict[str, Any]:
        """Return all estimates."""
        return {
            "disorders": [each.snapshot() for each in self.disorders],
            "multiplicity": list(self.multiplicity),
            "late": list(self._late),
            "given up": list(self._given_up),
            "losses": self.losses.snapshot(),
            "fresh": self._fresh,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        for estimate, each in zip(self.disorders, saved["disorders"], strict=True):
            estimate.restore(each)
        self.multiplicity = list(saved["multiplicity"])
        self._late, self._given_up = list(saved["late"]), list(saved["given up"])
        self.losses.restore(saved["losses"])
        self._fresh = saved["fresh"]


WARN_LOST = 10
"""Least number of lost results for a warning while rows still come."""


def shortfall(found: float, lost: float, least: float, ended: bool) -> str | None:
    """Return a warning if the share of results found is below ``least``; None if it is not.

    The text holds no figures, so that buckets with the same problem give the same text.
    """
    if lost < (0.5 if ended else WARN_LOST) or found >= least * (found + lost):
        return None
    return (
        f"fewer than {least * 100:.10g} % of the results were found, the share that accuracy= sets."
        " The metrics show the share found ('accuracy') and the rows whose results were lost"
        " ('late rows', 'rows given up'). Give the disorder if it is known,"
        " lw.unpromised(disorder=...), or more memory=, or set a lower accuracy="
    )
