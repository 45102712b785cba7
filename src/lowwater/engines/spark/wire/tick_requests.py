"""How buckets ask the clock for an enabling timestamp: a file each, on the driver's machine.

An ask says when (by the clock) a tick would let something be answered. It is a wish: losing one
delays answers until the next batch, and what a tick brings is in the clock's offset, not here.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from lowwater.engines.spark.wire.report import Report


def ask(
    folder: str, stage: int, bucket: int, batch: int, when: int | None, waits: bool = False
) -> None:
    """Say from when on a tick is wanted; None: none is. ``waits``: rows wait for one."""
    target = Path(folder) / f"{stage}-{bucket}.json"
    if not target.parent.is_dir():
        return  # another machine: the report of the batch brings the wish to the driver
    unfinished = target.with_name(f".{target.name}-{batch}")
    with contextlib.suppress(OSError):
        wish = json.dumps({"batch": batch, "when": when, "waits": waits})
        unfinished.write_text(wish, encoding="utf-8")
        unfinished.replace(target)


def pass_on(report: Report) -> None:
    """Bring the request that came with the report of a batch, unless a newer one is there."""
    request = report.request
    if request is None:
        return
    known = -1
    with contextlib.suppress(OSError, ValueError):
        name = f"{report.stage}-{report.bucket}.json"
        known = json.loads((Path(request.folder) / name).read_text(encoding="utf-8"))["batch"]
    if known < report.batch:
        where = report.stage, report.bucket, report.batch
        ask(request.folder, *where, request.when, request.waits)


def asked(folder: str, waiting: bool = False) -> int | None:
    """The earliest time at which somebody wants a tick, or somebody with rows that wait for one;
    None if nobody does."""
    wishes = []
    for each in Path(folder).glob("*.json"):
        with contextlib.suppress(OSError, ValueError):
            wish = json.loads(each.read_text(encoding="utf-8"))
            if wish["when"] is not None and (wish["waits"] or not waiting):
                wishes.append(int(wish["when"]))
    return min(wishes, default=None)
