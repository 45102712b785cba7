"""How buckets ask the clock for an enabling timestamp: a file each, on the driver's machine.

An ask says when (by the clock) a tick would let something be answered. It is a wish: losing one
delays answers until the next batch, and what a tick brings is in the clock's offset, not here.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path


def ask(folder: str, stage: int, bucket: int, batch: int, when: int | None) -> None:
    """Say from when on a tick is wanted; None: none is."""
    target = Path(folder) / f"{stage}-{bucket}.json"
    if not target.parent.is_dir():
        return  # another machine: the report of the batch carries the wish to the driver
    unfinished = target.with_name(f".{target.name}-{batch}")
    with contextlib.suppress(OSError):
        unfinished.write_text(json.dumps({"batch": batch, "when": when}), encoding="utf-8")
        unfinished.replace(target)


def asked(folder: str) -> int | None:
    """The earliest time at which somebody wants a tick; None if nobody does."""
    wishes = []
    for each in Path(folder).glob("*.json"):
        with contextlib.suppress(OSError, ValueError):
            when = json.loads(each.read_text(encoding="utf-8"))["when"]
            if when is not None:
                wishes.append(int(when))
    return min(wishes, default=None)
