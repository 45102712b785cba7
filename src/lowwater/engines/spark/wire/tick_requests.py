"""Buckets request ticks of the clock in files on the driver's machine, one file a bucket.

A request holds the clock time from which a tick would release something that operators hold back.
If a request is lost, answers come with the next batch; the time of a tick is in the clock's offset,
so no result depends on these files.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from lowwater.engines.spark.wire.report import Report, TickRequest


def save_request(request: TickRequest, stage: int, bucket: int, batch: int) -> None:
    """Save the request that a bucket made in a batch, in place of its last one."""
    target = _file(request.folder, stage, bucket)
    if not target.parent.is_dir():
        return  # another machine: the request goes to the driver with the report of the batch
    unfinished = target.with_name(f".{target.name}-{batch}")
    with contextlib.suppress(OSError):
        text = json.dumps({"batch": batch, "when": request.when, "waits": request.waits})
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)


def save_reported(report: Report) -> None:
    """Save the request that came with the report of a batch, unless a newer one is there."""
    request = report.request
    if request is None:
        return
    known = -1
    with contextlib.suppress(OSError, ValueError):
        saved = _file(request.folder, report.stage, report.bucket)
        known = json.loads(saved.read_text(encoding="utf-8"))["batch"]
    if known < report.batch:
        save_request(request, report.stage, report.bucket, report.batch)


def _file(folder: str, stage: int, bucket: int) -> Path:
    return Path(folder) / f"{stage}-{bucket}.json"


def earliest_request(folder: str, waiting: bool = False) -> int | None:
    """Return the earliest clock time from which a tick is requested; None if none is.

    ``waiting``: count only the requests of buckets in which rows wait for the tick.
    """
    times = []
    for each in Path(folder).glob("*.json"):
        with contextlib.suppress(OSError, ValueError):
            request = json.loads(each.read_text(encoding="utf-8"))
            if request["when"] is not None and (request["waits"] or not waiting):
                times.append(int(request["when"]))
    return min(times, default=None)
