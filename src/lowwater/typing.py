"""These are the types of arguments, for annotations; the API reference lists the values of each."""

from lowwater.engines.clock import Charge
from lowwater.joins.oblivious.options import ReliefMode, Strategy
from lowwater.joins.ordered.strategy import Order
from lowwater.joins.shape import How
from lowwater.operators.flush import Flush
from lowwater.operators.window_state import Form
from lowwater.plan.physical.operator import PlanShape
from lowwater.progress.contract import Contract
from lowwater.progress.options import Generation, Idle
from lowwater.progress.spec import Stamp
from lowwater.stream.duration import Duration
from lowwater.stream.size import Size
from lowwater.updates.options import Schedule, Windows

__all__ = [
    "Charge",
    "Contract",
    "Duration",
    "Flush",
    "Form",
    "Generation",
    "How",
    "Idle",
    "Order",
    "PlanShape",
    "ReliefMode",
    "Schedule",
    "Size",
    "Stamp",
    "Strategy",
    "Windows",
]
