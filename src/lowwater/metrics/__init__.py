"""Metrics as values: what a run did, readable at any moment and after it."""

from lowwater.metrics.catalogue import CATALOGUE, restored
from lowwater.metrics.histogram import Histogram
from lowwater.metrics.values import (
    CHANNELS,
    BatchMetrics,
    ChannelMetrics,
    CompletenessMetrics,
    OperatorMetrics,
    RunMetrics,
    StreamMetrics,
    channel_metrics,
    completeness_metrics,
    holding_channel,
)

__all__ = [
    "CATALOGUE",
    "CHANNELS",
    "BatchMetrics",
    "ChannelMetrics",
    "CompletenessMetrics",
    "Histogram",
    "OperatorMetrics",
    "RunMetrics",
    "StreamMetrics",
    "channel_metrics",
    "completeness_metrics",
    "holding_channel",
    "restored",
]
