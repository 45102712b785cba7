"""How much memory one side takes, all its processes together, in a session of its own.

Run in another process, because a JVM keeps what it has once taken.
"""

from __future__ import annotations

import json
import subprocess
import sys

from lowwater.bench.spark_compare import Bench, workspace

_PROGRAM = "from lowwater.bench.spark_memory import main; main()"


def peak_apart(workload: str, side: str, *more: str) -> int:
    """The most memory that was held while a side ran, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, workload, side, *more],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return int(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure the workload and side named on the command line."""
    from lowwater.bench import spark_oblivious  # noqa: PLC0415
    from lowwater.bench.spark_large import workloads  # noqa: PLC0415

    name, wanted, *more = sys.argv[1:]
    if name == spark_oblivious.NAME:
        flows, files, rows_each, sides = spark_oblivious.workload(*map(int, more))
    else:
        flows, files, rows_each, sides = workloads()[name]
    side = next(each for each in sides if each.name == wanted)
    with workspace() as folder:
        ran = Bench(folder, flows, files, rows_each).run(side, memory=True)
    sys.stdout.write(f"{ran.usage.memory}\n")
