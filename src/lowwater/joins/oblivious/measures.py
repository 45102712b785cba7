"""What is measured of the inputs of a window-oblivious join, and what it says of memory and loss.

The lag between two inputs is what is left of the rows held when disorder is taken off: rows of one
that the other has not passed, less those that come while the other sorts itself out. An input with
none of these is behind by what the other holds of what it has not reached.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowwater.joins.oblivious.gauge import Gauge
from lowwater.joins.oblivious.losses import Losses
from lowwater.joins.oblivious.model import Needs, Traits
from lowwater.joins.oblivious.options import Oblivious
from lowwater.joins.oblivious.places import Places
from lowwater.joins.oblivious.records import Ticks
from lowwater.joins.oblivious.shortfall import shortfall
from lowwater.operators.metric import Max, Mean, Metric, Ratio, Readings, Sum

CAREFUL = 2
"""Of the results that may be lost, one in so many is meant to be: what comes may be worse."""
OFTEN = 4
"""Measured is anew when one in so many of the rows held is new."""
FEW = 64
"""But not before so many are."""


FOUND = Metric(
    "join_results_found",
    int,
    "rows",
    Sum(),
    "results found",
    "Results that left the join.",
    total=True,
)
LOST = Metric(
    "join_results_lost",
    float,
    "rows",
    Sum(),
    "results lost",
    "Results that were not found, counted or estimated.",
)
LOST_MARGIN = Metric(
    "join_results_lost_margin",
    float,
    "rows",
    Sum(exact=False),
    "results lost margin",
    "By how many results the estimate of those lost may be wrong.",
)
ACCURACY = Metric(
    "join_accuracy",
    float,
    "share",
    Ratio(FOUND, LOST),
    "accuracy",
    "The share of the results that was found.",
    summary=True,
)
ACCURACY_ASKED = Metric(
    "join_accuracy_asked",
    float,
    "share",
    Max(),
    "accuracy asked for",
    "The share of the results that accuracy= asks for, the same in all buckets.",
)
ACCURACY_EXPECTED = Metric(
    "join_accuracy_expected",
    float,
    "share",
    Mean(FOUND),
    "expected accuracy",
    "The share of the results that the rows held now suffice for.",
)
LATE_ROWS = Metric(
    "join_late_rows",
    int,
    "rows",
    Sum(),
    "late rows",
    "Rows that came after rows they could have met were dropped.",
    total=True,
)
GIVEN_UP = Metric(
    "join_given_up_rows",
    int,
    "rows",
    Sum(),
    "rows given up",
    "Rows dropped before they met anything, because memory was full.",
    total=True,
)
RATE = Metric(
    "join_input_rate", float, "rows/s", Sum(exact=False), "rows/s", "Rows of an input in a second."
)
SCRAMBLING = Metric(
    "join_scrambling_factor",
    int,
    "rows",
    Sum(exact=False),
    "scrambling factor",
    "By how many rows the rows of an input are out of order at most; summed over buckets.",
)
MULTIPLICITY = Metric(
    "join_multiplicity",
    int,
    "rows",
    Max(),
    "multiplicity",
    "The most rows of an input that came together with one value.",
)
PREDICTED = Metric(
    "join_predicted_rows",
    float,
    "rows",
    Sum(exact=False),
    "predicted rows",
    "Rows of an input that the join should have to hold.",
)
LAG = Metric(
    "join_lag_rows",
    int,
    "rows",
    Sum(exact=False),
    "lag",
    "By how many of its rows an input is ahead of another one.",
)
HELD = Metric(
    "join_held_rows",
    int,
    "rows",
    Sum(exact=False),
    "held rows",
    "Rows of an input that the join holds in memory.",
)
ON_DISK = Metric(
    "join_disk_rows",
    int,
    "rows",
    Sum(exact=False),
    "rows on disk",
    "Rows of an input that wait on disk.",
)


class Measures:
    """A gauge of each input, their multiplicities, and what was lost."""

    def __init__(self, options: Oblivious, ports: int, ticks_per_second: int):
        missing = (1 - options.accuracy) / ports / CAREFUL
        known = options.disorder or (None,) * ports
        self.gauges = [Gauge(missing, each, ticks_per_second) for each in known]
        self.multiplicity = [1] * ports
        self.late = [0] * ports
        """Rows of each input that came below what was dropped of another."""
        self.given_up = [0] * ports
        """Rows that nobody had reached and that memory had no place for."""
        self.asked = options.accuracy
        self.losses = Losses(ports)
        """Which results were found, and which were lost."""
        self._fresh = 0
        self._together: list[list[Ticks]] = [[] for _ in known]

    def begin_again(self) -> None:
        """Measure the inputs anew; what was found and lost stays counted."""
        self.gauges = [each.fresh() for each in self.gauges]
        self.multiplicity = [1] * len(self.gauges)
        self.losses.begin_again()

    def take(self, port: int, ticks: Ticks, below: int) -> None:
        """Take rows in, to be measured with all that come together with them; those below a value
        come too late."""
        self.late[port] += int((ticks < below).sum())
        self._together[port].append(ticks)
        self._fresh += len(ticks)

    def measure(self, now: int) -> None:
        """Measure the rows that were taken in."""
        for port, ticks in enumerate(self._together):
            if ticks:
                together = np.concatenate(ticks)
                self.gauges[port].observe(together, now)
                if len(together) > 1:
                    self._count(port, together)
                ticks.clear()

    @property
    def unique(self) -> bool:
        """Whether no input has had a value twice, as far as that is measured."""
        measured = all(gauge.measures for gauge in self.gauges)
        return measured and max(self.multiplicity) == 1

    @property
    def tops(self) -> list[int]:
        """The greatest value of each input so far, measured or not."""
        return [
            max(gauge.top, *(int(each.max()) for each in ticks)) if ticks else gauge.top
            for gauge, ticks in zip(self.gauges, self._together, strict=True)
        ]

    def due(self, held: int) -> bool:
        """Whether it is time to look at all rows again."""
        return self._fresh >= max(FEW, held // OFTEN)

    def renew(self, places: Places) -> None:
        """Look at all rows in memory."""
        self._fresh = 0
        for port in range(len(self.gauges)):
            self._count(port, places.values(port))

    def _count(self, port: int, ticks: Ticks) -> None:
        """See how often a value comes."""
        if len(ticks):
            most = int(np.unique(ticks, return_counts=True)[1].max())
            self.multiplicity[port] = max(self.multiplicity[port], most)

    def needs(self, places: Places, now: int, reading: bool = True) -> Needs | None:
        """What is needed, by what is measured; None before enough is.

        Without ``reading`` rows, it is known to the slice in which they are kept.
        """
        if any(gauge.factor is None for gauge in self.gauges):
            return None
        rates = [gauge.rate(now) for gauge in self.gauges]
        if not all(rates):
            rates = [float(max(1, gauge.rows)) for gauge in self.gauges]
        traits = tuple(
            Traits(rate or 1.0, min(gauge.factor or 0, gauge.rows), many)
            for gauge, rate, many in zip(self.gauges, rates, self.multiplicity, strict=True)
        )
        values = [places.values(port) for port in range(len(traits))] if reading else []

        def not_below(port: int, value: int) -> int:
            if not reading:
                return places.from_slice_of(port, value)
            return int((values[port] >= value).sum())

        far = [each.rows for each in places.aside]
        tops = self.tops

        def lag(one: int, other: int) -> float:
            """Rows that one input is ahead of another, or behind it if there are none."""
            own, mate = traits[one], traits[other]
            ratio = own.rate / mate.rate
            ahead = not_below(one, self.gauges[other].bound) + far[one]
            if not ahead:
                since = not_below(other, tops[one]) + far[other] - mate.disorder
                ahead = -round(max(0, since) * ratio)
            return ahead - ratio * mate.disorder

        ports = range(len(traits))
        lags = [tuple(lag(one, other) for other in ports) for one in ports]
        return Needs(traits, tuple(lags))

    @property
    def accuracy(self) -> float:
        """The share of results that was found: found ones are counted, lost ones are counted or
        estimated."""
        lost, _ = self.losses.lost
        whole = self.losses.found + lost
        return self.losses.found / whole if whole else 1.0

    def shortfall(self, ended: bool) -> list[str]:
        """A warning, if too many results are lost."""
        note = shortfall(self.losses.found, self.losses.lost[0], self.asked, ended)
        return [] if note is None else [note]

    def metrics(self, places: Places, now: int, reading: bool = True) -> Readings:
        """Return all figures; inputs are numbered from 0."""
        lost, margin = self.losses.lost
        found: dict[Metric[Any], int | float | None] = {
            ACCURACY: self.accuracy,
            ACCURACY_ASKED: self.asked,
            FOUND: self.losses.found,
            LOST: lost,
            LOST_MARGIN: margin,
            ACCURACY_EXPECTED: float(np.prod([gauge.expected for gauge in self.gauges])),
            LATE_ROWS: sum(self.late),
            GIVEN_UP: sum(self.given_up),
        }
        needs, ports = self.needs(places, now, reading), range(len(self.gauges))
        for port, gauge in enumerate(self.gauges):
            found[RATE.of(port)] = gauge.rate(now)
            found[SCRAMBLING.of(port)] = gauge.scrambling
            found[MULTIPLICITY.of(port)] = self.multiplicity[port]
            if needs is not None:
                found[PREDICTED.of(port)] = needs.buffer(port)
                for other in ports:
                    if other != port:
                        found[LAG.of(port, other)] = round(needs.lags[port][other])
            found[HELD.of(port)] = places.held(port)
            found[ON_DISK.of(port)] = places.aside[port].rows
        return Readings(found)

    def snapshot(self) -> dict[str, Any]:
        """All that is measured."""
        return {
            "gauges": [each.snapshot() for each in self.gauges],
            "multiplicity": list(self.multiplicity),
            "late": list(self.late),
            "given up": list(self.given_up),
            "losses": self.losses.snapshot(),
            "fresh": self._fresh,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        for gauge, each in zip(self.gauges, saved["gauges"], strict=True):
            gauge.restore(each)
        self.multiplicity = list(saved["multiplicity"])
        self.late, self.given_up = list(saved["late"]), list(saved["given up"])
        self.losses.restore(saved["losses"])
        self._fresh = saved["fresh"]
