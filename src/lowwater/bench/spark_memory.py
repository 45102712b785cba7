"""How much memory one side takes, all its processes together, in a session of its own.

Run in another process, because a JVM keeps what it has once taken.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from lowwater.bench.spark_compare import Bench, workspace
from lowwater.bench.spark_data import Flow
from lowwater.bench.spark_side import Side

_PROGRAM = "from lowwater.bench.spark_memory import main; main()"


def peak(side: Side, flows: Sequence[Flow], files: int, rows_each: int) -> int:
    """The most memory that was held while a side ran."""
    with workspace() as folder:
        return Bench(folder, flows, files, rows_each).run(side, memory=True).usage.memory


def peak_apart(side: str) -> int:
    """The same for a side of W3, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, side],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return int(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure the side named on the command line."""
    from lowwater.bench.spark_large import band_flows, band_sides  # noqa: PLC0415

    mine, theirs = band_sides()
    side = next(each for each in (mine, *theirs) if each.name == sys.argv[1])
    sys.stdout.write(f"{peak(side, *band_flows())}\n")
