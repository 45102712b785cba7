"""lowwater: continuous queries over streams that arrive late, out of order, or out of step.

>>> import lowwater as lw

Names are loaded when they are first used: a worker of the Spark engine needs the kernels, and
neither the planner nor the command.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowwater.api import Stream, join, sql, stream
    from lowwater.api.together import together
    from lowwater.dashboard.options import dashboard
    from lowwater.engines.clock import VirtualClock, WallClock, per_row
    from lowwater.engines.run import Run
    from lowwater.errors import (
        AdmissionError,
        BadInput,
        BrokenPromise,
        CheckpointError,
        ExpressionError,
        LowwaterError,
        OperatorError,
        OptionError,
        QueryError,
        SinkError,
        StateError,
        StreamError,
        StreamWarning,
    )
    from lowwater.operators.aggregates import UserAggregate as aggregate
    from lowwater.operators.flush import lazy, slow
    from lowwater.plan.builders.joins import same
    from lowwater.progress.contract import (
        learned,
        ordered,
        punctuated,
        unpromised,
        within,
        within_rows,
    )
    from lowwater.progress.options import every, heartbeat, jump, on_demand, timer
    from lowwater.sinks import Folder as folder
    from lowwater.sources.generate import Workload
    from lowwater.sources.push import push
    from lowwater.sources.replay import replay

__version__ = "0.1.0"

_HOMES = {
    "AdmissionError": ("lowwater.errors", "AdmissionError"),
    "BadInput": ("lowwater.errors", "BadInput"),
    "BrokenPromise": ("lowwater.errors", "BrokenPromise"),
    "CheckpointError": ("lowwater.errors", "CheckpointError"),
    "ExpressionError": ("lowwater.errors", "ExpressionError"),
    "LowwaterError": ("lowwater.errors", "LowwaterError"),
    "OperatorError": ("lowwater.errors", "OperatorError"),
    "OptionError": ("lowwater.errors", "OptionError"),
    "QueryError": ("lowwater.errors", "QueryError"),
    "Run": ("lowwater.engines.run", "Run"),
    "SinkError": ("lowwater.errors", "SinkError"),
    "StateError": ("lowwater.errors", "StateError"),
    "Stream": ("lowwater.api", "Stream"),
    "StreamError": ("lowwater.errors", "StreamError"),
    "StreamWarning": ("lowwater.errors", "StreamWarning"),
    "VirtualClock": ("lowwater.engines.clock", "VirtualClock"),
    "WallClock": ("lowwater.engines.clock", "WallClock"),
    "Workload": ("lowwater.sources.generate", "Workload"),
    "aggregate": ("lowwater.operators.aggregates", "UserAggregate"),
    "dashboard": ("lowwater.dashboard.options", "dashboard"),
    "every": ("lowwater.progress.options", "every"),
    "folder": ("lowwater.sinks", "Folder"),
    "heartbeat": ("lowwater.progress.options", "heartbeat"),
    "join": ("lowwater.api", "join"),
    "jump": ("lowwater.progress.options", "jump"),
    "lazy": ("lowwater.operators.flush", "lazy"),
    "learned": ("lowwater.progress.contract", "learned"),
    "on_demand": ("lowwater.progress.options", "on_demand"),
    "ordered": ("lowwater.progress.contract", "ordered"),
    "per_row": ("lowwater.engines.clock", "per_row"),
    "punctuated": ("lowwater.progress.contract", "punctuated"),
    "push": ("lowwater.sources.push", "push"),
    "replay": ("lowwater.sources.replay", "replay"),
    "same": ("lowwater.plan.builders.joins", "same"),
    "slow": ("lowwater.operators.flush", "slow"),
    "sql": ("lowwater.api", "sql"),
    "stream": ("lowwater.api", "stream"),
    "timer": ("lowwater.progress.options", "timer"),
    "together": ("lowwater.api.together", "together"),
    "unpromised": ("lowwater.progress.contract", "unpromised"),
    "within": ("lowwater.progress.contract", "within"),
    "within_rows": ("lowwater.progress.contract", "within_rows"),
}
"""The module of each public name, and its name there."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, inside = _HOMES[name]
    value = getattr(import_module(module), inside)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


class _Package(ModuleType):
    """The package as a module: loading its packages ``stream`` and ``dashboard`` does not replace
    the functions of these names."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


__all__ = [
    "AdmissionError",
    "BadInput",
    "BrokenPromise",
    "CheckpointError",
    "ExpressionError",
    "LowwaterError",
    "OperatorError",
    "OptionError",
    "QueryError",
    "Run",
    "SinkError",
    "StateError",
    "Stream",
    "StreamError",
    "StreamWarning",
    "VirtualClock",
    "WallClock",
    "Workload",
    "aggregate",
    "dashboard",
    "every",
    "folder",
    "heartbeat",
    "join",
    "jump",
    "lazy",
    "learned",
    "on_demand",
    "ordered",
    "per_row",
    "punctuated",
    "push",
    "replay",
    "same",
    "slow",
    "sql",
    "stream",
    "timer",
    "together",
    "unpromised",
    "within",
    "within_rows",
]
