"""A probe runs a query in this process on a virtual clock and lets the caller observe its steps.

A probe is for tests, experiments and teaching: how many rows an operator holds, what a step costs,
when each result leaves. The run is single-threaded and, unless work is charged as measured, the
same every time. Metrics of a whole run are enough for most questions; an :class:`Observer` is for
those about a moment.

>>> import lowwater as lw, polars as pl
>>> from lowwater.probe import Observer, Probe
>>> log = pl.DataFrame({"at": [0.0, 1.0, 2.0, 3.0], "ts": [1, 0, 3, 4]})
>>> rows = lw.stream(lw.replay(log, "at"), name="rows", time="ts", progress=lw.within(1))
>>> class Held(Observer):
...     def on_idle(self) -> None:
...         print(f"at {self.run.seconds:g} s the sort holds {self.run.operator('sort').rows}")
>>> run = Probe(rows.order_by("ts"), observer=Held(), tick=0).run()
at 0 s the sort holds 1
at 1 s the sort holds 1
at 2 s the sort holds 1
>>> run.results.rows()
[(1.0, 0, 1.0), (0.0, 1, 2.0), (2.0, 3, 3.0), (3.0, 4, 3.0)]
"""

from lowwater.engines.clock import PerComparison, PerRow
from lowwater.probe.parts import Chunks, judge_rows, scrambling_factors
from lowwater.probe.run import CHUNK_ROWS, Observer, Probe, ProbedOperator, Step
from lowwater.stream.duration import SECOND

__all__ = [
    "CHUNK_ROWS",
    "SECOND",
    "Chunks",
    "Observer",
    "PerComparison",
    "PerRow",
    "Probe",
    "ProbedOperator",
    "Step",
    "judge_rows",
    "scrambling_factors",
]
