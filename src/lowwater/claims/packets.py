"""Links have the network packets of the OOP experiments (OOP §8), with a rate, a skew and a delay.

The traces of the paper are not at hand. These links have its columns, its rates and its skews;
addresses and ports are drawn evenly from a given number of pairs or flows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

import lowwater as lw
from lowwater.typing import Contract

MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class Link:
    """One link. ``rate`` is packets a second; a packet arrives ``delay`` seconds after its time.

    ``flows`` is how many combinations of addresses and ports there are; with ``reverse`` they are
    the same flows seen from the other end. ``late_share`` of the packets arrive up to ``late_by``
    seconds later than the others. ``whole_seconds`` makes times integers that count seconds, and
    ``even`` spaces the packets evenly instead of at random.
    """

    name: str
    rate: float
    seconds: float
    flows: int
    seed: int
    delay: float = 0.0
    late_share: float = 0.0
    late_by: float = 0.0
    reverse: bool = False
    whole_seconds: bool = False
    even: bool = False

    def table(self) -> pl.DataFrame:
        """Return the packets in arrival order; ``arrived`` is in seconds."""
        rng = np.random.default_rng(self.seed)
        count = round(self.rate * self.seconds)
        at_random = np.sort(rng.uniform(0, self.seconds, count))
        times = (np.arange(count) + 0.5) / self.rate if self.even else at_random
        arrived = times + self.delay
        if self.late_share:
            late = rng.random(count) < self.late_share
            arrived[late] += rng.uniform(0, self.late_by, int(late.sum()))
        order = np.argsort(arrived, kind="stable")
        flow = rng.integers(0, self.flows, count)
        ends = _ends(flow)
        near, far = ("dest", "src") if self.reverse else ("src", "dest")
        return pl.DataFrame(
            {
                "arrived": arrived[order],
                "ts": self._stamps(times[order]),
                f"{near}IP": ends["near_ip"][order],
                f"{far}IP": ends["far_ip"][order],
                f"{near}Port": ends["near_port"][order],
                f"{far}Port": ends["far_port"][order],
            }
        ).select("arrived", "ts", "srcIP", "destIP", "srcPort", "destPort")

    def _stamps(self, times: NDArray[np.floating]) -> pl.Series:
        if self.whole_seconds:
            return pl.Series(np.floor(times).astype(np.int64))
        return pl.Series((times * MICROSECONDS).astype(np.int64)).cast(pl.Datetime("us"))

    def stream(self, *columns: str, progress: Contract | None = None) -> lw.Stream:
        """Return the link as a stream of these columns (by default all but the arrival time).

        The arrival time drives the replay and is dropped at once, so no operator holds it.
        """
        kept = columns or ("ts", "srcIP", "destIP", "srcPort", "destPort")
        source = lw.stream(
            lw.replay(self.table(), "arrived"),
            name=self.name,
            time="ts",
            unit="s",
            progress=progress or lw.ordered(),
        )
        return source.select(*kept)


REPLIES = (
    ("srcIP", "destIP"),
    ("destIP", "srcIP"),
    ("srcPort", "destPort"),
    ("destPort", "srcPort"),
)
"""The join columns that pair a packet with the packets of the opposite direction."""


def _ends(flow: NDArray[np.int64]) -> dict[str, NDArray[np.unsignedinteger]]:
    """Return addresses and ports by flow number: a near address has 256 far ends."""
    return {
        "near_ip": (flow // 256).astype(np.uint32) + 0x0A000000,
        "far_ip": (flow % 256).astype(np.uint32) + 0xC0A80000,
        "near_port": (1024 + flow % 50_000).astype(np.uint16),
        "far_port": np.full(len(flow), 443, dtype=np.uint16),
    }
