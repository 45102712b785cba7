"""The metrics of a run are values; they can be read at any moment of the run and after it."""

from lowwater.metrics.codec import CATALOGUE, finite, plain, restored
from lowwater.metrics.histogram import Histogram
from lowwater.metrics.streams import (
    CHANNELS,
    ChannelMetrics,
    CompletenessMetrics,
    HoldingChannel,
    StreamMetrics,
    channel_metrics,
    completeness_metrics,
    holding_channel,
)
from lowwater.metrics.values import BatchMetrics, OperatorMetrics, RunMetrics

__all__ = [
    "CATALOGUE",
    "CHANNELS",
    "BatchMetrics",
    "ChannelMetrics",
    "CompletenessMetrics",
    "Histogram",
    "HoldingChannel",
    "OperatorMetrics",
    "RunMetrics",
    "StreamMetrics",
    "channel_metrics",
    "completeness_metrics",
    "finite",
    "holding_channel",
    "plain",
    "restored",
]
