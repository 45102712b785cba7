"""All metrics that kernels declare, by name, so that values can be read back from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from lowwater.joins.oblivious import estimates, restarting_join
from lowwater.joins.ordered import ordered_join
from lowwater.operators import metric
from lowwater.operators.metric import Metric, Readings, Value
from lowwater.updates import queueing

DECLARING: tuple[ModuleType, ...] = (metric, ordered_join, estimates, restarting_join, queueing)
"""The modules that declare metrics."""
CATALOGUE: Mapping[str, Metric[Any]] = {
    each.name: each
    for module in DECLARING
    for each in vars(module).values()
    if isinstance(each, Metric)
}
"""Every metric that a kernel may report, by name."""


def restored(plain: Mapping[str, Value]) -> Readings:
    """Return the readings that :meth:`Readings.plain` made JSON of.

    A name that this version does not know is left out.
    """
    found: dict[Metric[Any], Value] = {}
    for id_, value in plain.items():
        name, _, inputs = id_.rstrip("]").partition("[")
        if name in CATALOGUE:
            about = CATALOGUE[name]
            found[about.of(*map(int, inputs.split(","))) if inputs else about] = value
    return Readings(found)
