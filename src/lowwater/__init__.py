"""lowwater: continuous queries over streams that arrive late, out of order, or out of step.

>>> import lowwater as lw
"""

from lowwater.api import Stream, stream
from lowwater.engines.embedded.clock import VirtualClock, WallClock
from lowwater.engines.run import Run
from lowwater.errors import (
    BadInput,
    BrokenPromise,
    ExpressionError,
    LowwaterError,
    OperatorError,
    OptionError,
    QueryError,
    SinkError,
    StreamError,
    StreamWarning,
)
from lowwater.operators.aggregates import UserAggregate as aggregate
from lowwater.plan.joining import same
from lowwater.progress.contract import (
    every,
    heartbeat,
    jump,
    on_demand,
    ordered,
    punctuated,
    timer,
    within,
    within_rows,
)
from lowwater.sources.generate import Workload
from lowwater.sources.push import push
from lowwater.sources.replay import replay

__version__ = "0.1.0"

__all__ = [
    "BadInput",
    "BrokenPromise",
    "ExpressionError",
    "LowwaterError",
    "OperatorError",
    "OptionError",
    "QueryError",
    "Run",
    "SinkError",
    "Stream",
    "StreamError",
    "StreamWarning",
    "VirtualClock",
    "WallClock",
    "Workload",
    "aggregate",
    "every",
    "heartbeat",
    "jump",
    "on_demand",
    "ordered",
    "punctuated",
    "push",
    "replay",
    "same",
    "stream",
    "timer",
    "within",
    "within_rows",
]
