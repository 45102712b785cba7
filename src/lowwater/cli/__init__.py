"""The command line runs, checks and explains pipelines, runs claims and benchmarks, shows runs.

Results go to standard output, progress and errors to standard error. Exit codes: 0 done, 1 failed,
2 wrong usage.
"""

from __future__ import annotations

import sys

from lowwater.cli import measurements, pipelines
from lowwater.cli.app import app

COMMANDS = (
    pipelines.run,
    pipelines.check,
    pipelines.explain,
    pipelines.dashboard,
    measurements.claims,
    measurements.bench,
    measurements.checkpoint,
)
"""The commands in the order in which help shows them."""

for _command in COMMANDS:
    app.command()(_command)


def main() -> None:
    """Run the command line."""
    sys.exit(app(prog_name="lowwater"))
