"""``python -m lowwater.bench kernels``: rows of figures as JSON, for :func:`lowwater.bench.run`."""

from __future__ import annotations

import json
import sys

from lowwater.bench import run


def main() -> None:
    """Run the benchmarks named on the command line."""
    json.dump(run(sys.argv[1:]), sys.stdout)


if __name__ == "__main__":
    main()
