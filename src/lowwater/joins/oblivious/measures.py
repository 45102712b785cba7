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

CAREFUL = 2
"""Of the results that may be lost, one in so many is meant to be: what comes may be worse."""
OFTEN = 4
"""Measured is anew when one in so many of the rows held is new."""
FEW = 64
"""But not before so many are."""


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

    def about(self, places: Places, now: int, reading: bool = True) -> dict[str, str | int | float]:
        """All figures, for people; inputs are numbered from 0."""
        lost, margin = self.losses.lost
        about: dict[str, str | int | float] = {
            "accuracy": self.accuracy,
            "accuracy asked for": self.asked,
            "results found": self.losses.found,
            "results lost": lost,
            "results lost margin": margin,
            "expected accuracy": float(np.prod([gauge.expected for gauge in self.gauges])),
            "late rows": sum(self.late),
            "rows given up": sum(self.given_up),
        }
        needs, ports = self.needs(places, now, reading), range(len(self.gauges))
        for port, gauge in enumerate(self.gauges):
            rate = gauge.rate(now)
            if rate is not None:
                about[f"rows/s[{port}]"] = rate
            about[f"scrambling factor[{port}]"] = gauge.scrambling
            about[f"multiplicity[{port}]"] = self.multiplicity[port]
            if needs is not None:
                about[f"predicted rows[{port}]"] = needs.buffer(port)
                for other in ports:
                    if other != port:
                        about[f"lag[{port}→{other}]"] = round(needs.lags[port][other])
            about[f"held rows[{port}]"] = places.held(port)
            about[f"rows on disk[{port}]"] = places.aside[port].rows
        return about

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
