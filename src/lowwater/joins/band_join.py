"""OOP-Join (OOP §5.3, Fig. 4): a symmetric join bounded on progressing attributes.

New rows are matched with the kept rows of the other side. Then they are kept themselves if a
partner can still come. The mark of one side purges the rows kept of the other.

Output promises. A pair still to come has a left row still to come, or a right one. So it satisfies
the promise of the left input *or* that of the right one (joint punctuation, §7), whatever the reach
of the join; the promises of the inputs may be joint themselves. If the left row of the pair came
before, it was kept, so its time is not below the earliest time that the right mark reaches. So the
pair also satisfies the promise of the left input *or* that bound, both on left columns; on the left
time they are one bound, the lesser of the two (individual punctuation). A progressing column that
is at most ``behind`` ticks below its side's time is bounded likewise.

Only a promise on the time alone purges the other side. A joint promise would add nothing: whatever
follows from it for the time, the input also promises on the time alone.

Invariant: a row is kept exactly while a partner at or above the other side's mark could match it.
An outer join emits an unmatched row when it drops it, before the promise that follows. Such a row
has the columns of its own side only. So an outer join makes no promise on both sides together; on
the side it keeps, it promises the same as an inner join, and on the other side only the time, for
rows that have one.

Feedback. If a result needs the time of one side to be at least a floor, rows of the other side must
be in reach of that floor. A side whose unmatched rows are no results needs only rows that reach the
earliest row kept of the other side, or its mark; after the end of the other side, and with none of
its rows kept, it needs no row at all. But no pair may be left out if that makes its other row an
unmatched one.

Rows without a partner may leave slowly (OOP §6). They are dropped as they leave; until then the
promises on the side they are of stay at the first of them. A promise on a group is not slowed down.

If the inputs promise per group, and columns that must be equal name the groups, the join does the
same for each group. The mark of a group on a side is the greater of its own and the side's. A group
that has ended on both sides is dropped; so is one that has ended on one, once its mark on the other
is no more than that of the whole side.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.joins.promises import InputPromises, OutputMarks, any_of
from lowwater.joins.reach import Ticks
from lowwater.joins.shape import IDS, JoinShape
from lowwater.operators.flush import Slow
from lowwater.operators.gradual import GradualRelease
from lowwater.operators.group_rows import take_group_rows
from lowwater.operators.kernel import Kernel, Request
from lowwater.operators.waiting import Release
from lowwater.state.group_table import GroupTable, Numbers
from lowwater.state.slicing import Slicing, reslice, take_below
from lowwater.state.store import ChunkStore, add, read, split
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    ENDED,
    MARK,
    Chunk,
    Element,
    GroupPunctuation,
    Punctuation,
    moved,
)
from lowwater.stream.floor import Floor, raised

ROWS = ("rows0", "rows1")
MATCHED = ("matched0", "matched1")
HELD, PROMISED = ("mark0", "mark1"), ("promised0", "promised1")
TIME = "__time"


class BandJoin(Kernel):
    """Joins two inputs whose times lie within each other's reach.

    ``by`` are the left columns that name a group with promises of its own. ``awaited`` are the
    output attributes on which a consumer uses promises; None: all. ``flush`` is the pace of rows
    without a partner, which have left when the mark is ``bound`` ticks past the one that freed
    them; None if they leave at once.
    """

    rule: ClassVar[str] = "individual: own mark or the other's reach, the lesser; joint: both marks"
    feeds_back: ClassVar[bool] = True

    def __init__(
        self,
        store: ChunkStore,
        shape: JoinShape,
        slice_ticks: int,
        by: Sequence[str] = (),
        awaited: frozenset[str] | None = None,
        flush: Slow | None = None,
        bound: int = 0,
    ):
        super().__init__(store, 2)
        self._shape, self._reach = shape, shape.reach
        self._names = [shape.out_names(side) for side in (0, 1)]
        self._behind = {each.out: each.behind for each in shape.carried}
        self._out = OutputMarks(awaited)
        self._received = InputPromises(self._names)
        self._slicing = Slicing(slice_ticks)
        self._marks = [BEGINNING, BEGINNING]
        self._next_id = [0, 0]
        self._by = list(by)
        self._inside = [shape.group_keys(side, by) for side in (0, 1)]
        self._groups = GroupTable(dict.fromkeys((*HELD, *PROMISED), BEGINNING), store)
        self._slowly = {
            side: GradualRelease(
                store, ROWS[side], shape.inside_time(side), self._slicing, flush, bound
            )
            for side in (0, 1)
            if flush is not None and shape.keeps(side)
        }

    # ---- rows ------------------------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Return the results of new rows, and the rows without a partner that leave with them."""
        results = self._join(port, chunk)
        waiting = {side: each.left for side, each in self._slowly.items() if each.pending}
        for side in waiting:
            self._slowly[side].add_rows(chunk.height)
            results += self._leave(side)
        if all(self._slowly[side].left == before for side, before in waiting.items()):
            return results
        return [*results, *self._promise(), *self._promise_all_groups()]

    def _join(self, port: int, chunk: Chunk) -> list[Element]:
        """Match rows with the other side, then keep those that can still match rows to come."""
        shape = self._shape
        rows = shape.prepare(port, chunk, self._next_id[port] if shape.keeps(port) else None)
        self._next_id[port] += chunk.height
        low, high = self._observed(port, chunk)
        pairs = self._meet(port, rows, low, high)
        out: list[Element] = []
        if pairs is not None and pairs.height:
            out.append(shape.put_out(pairs))
            self._keep_matches(pairs)
        done = self._keep(port, rows, low)
        if shape.keeps(port) and done.height:
            if pairs is not None:
                done = done.join(pairs.select(IDS[port]), on=IDS[port], how="anti")
            if done.height:
                out.append(shape.put_out(done))
        return out

    def _observed(self, port: int, chunk: Chunk) -> tuple[int, int]:
        """Return the least and the greatest time of new rows; adapt the width of slices to them."""
        ticks = self._shape.domain.array_of(chunk[self._shape.times[port]])
        low, high = int(ticks.min()), int(ticks.max())
        if self._slicing.observe(chunk.height, low, high):
            self._reslice()
        return low, high

    def _reslice(self) -> None:
        width = self._slicing.width
        for side in (0, 1):
            reslice(self.store, ROWS[side], self._shape.inside_time(side) // width)
            reslice(self.store, MATCHED[side], pl.col(TIME) // width)

    def _others(self, port: int, low: int, high: int) -> Chunk | None:
        """Return the kept rows of the other side that rows between two times can match."""
        first = self._reach.earliest(port, low) // self._slicing.width
        last = self._reach.latest(port, high) // self._slicing.width + 1
        return read(self.store, ROWS[1 - port], first, last)

    def _meet(self, port: int, rows: Chunk, low: int, high: int) -> Chunk | None:
        others = self._others(port, low, high)
        if others is None:
            return None
        self.comparisons += self._reach.comparisons(rows.height, others.height, high - low)
        return self._shape.match(*((rows, others) if port == 0 else (others, rows)))

    def _threshold(self, port: int) -> int:
        """Return the time below which rows of a side match no row still to come."""
        return self._reach.earliest(1 - port, self._marks[1 - port])

    def _passed(self, port: int, rows: Chunk, time: pl.Expr) -> pl.Series:
        """Return, for each row of a side, True if it matches no row still to come."""
        passed = rows.select((time < self._threshold(port)).alias("passed"))["passed"]
        if not self._groups.has_groups:
            return passed
        inside = self._inside[port]
        keys = rows.select(pl.col(name).alias(key) for key, name in inside.items())
        once = keys.unique()
        reached = pl.Series(MARK, self._thresholds(port, self._groups.find(once)))
        joined = keys.join(
            once.with_columns(reached), on=self._by, how="left", nulls_equal=True,
            maintain_order="left",
        )  # fmt: skip
        return passed | (rows.select(time.alias(TIME))[TIME] < joined[MARK])

    def _keep(self, port: int, rows: Chunk, low: int) -> Chunk:
        """Keep the rows that can match rows to come; return the others."""
        time = self._shape.inside_time(port)
        done = rows.clear()
        if self._groups.has_groups or low < self._threshold(port):
            passed = self._passed(port, rows, time)
            if passed.any():
                done, rows = rows.filter(passed), rows.filter(~passed)
        for slice_, part in split(rows, time // self._slicing.width):
            add(self.store, ROWS[port], slice_, part)
        return done

    def _keep_matches(self, pairs: Chunk) -> None:
        for side in (0, 1):
            if not self._shape.keeps(side):
                continue
            time = self._shape.inside_time(side).alias(TIME)
            keys = [name for name in self._inside[side].values() if name in pairs.columns]
            met = pairs.select(IDS[side], time, *keys).unique(IDS[side])
            met = met.filter(~self._passed(side, met, pl.col(TIME)))
            for slice_, part in split(met, pl.col(TIME) // self._slicing.width):
                add(self.store, MATCHED[side], slice_, part)

    # ---- promises --------------------------------------------------------------------------

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Purge the other side; return the unmatched rows and promises that follow."""
        if not self._received.advance(port, promise):
            return []
        if promise.attributes != (self._shape.times[port],):
            return self._promise()
        self._marks[port] = promise.values[0]
        return [*self._purge(1 - port), *self._promise(), *self._promise_all_groups()]

    def close_port(self, port: int) -> Sequence[Element]:
        """Purge the other side of an input that ended: no row of it is still to come."""
        self._marks[port] = END_OF_TIME
        self._received.end(port, self._shape.times[port])
        answers = self._purge(1 - port)
        if not self._open:
            for side in (0, 1):
                answers += self._purge(side)
            self._groups.clear()
            return answers
        return [*answers, *self._promise(), *self._promise_all_groups()]

    def _purge(self, side: int) -> list[Element]:
        threshold, width = self._threshold(side), self._slicing.width
        if side in self._slowly:
            self._slowly[side].free(self._marks[1 - side], threshold)
            return self._leave(side)
        time, met = self._shape.inside_time(side), None
        dropped = take_below(self.store, ROWS[side], time, threshold, width)
        if self._shape.keeps(side):
            met = take_below(self.store, MATCHED[side], pl.col(TIME), threshold, width)
        return self._dropped(side, dropped, met)

    def _leave(self, side: int) -> list[Element]:
        """Drop the rows of a side that leave now, slowly; return those without a partner."""
        slowly, width = self._slowly[side], self._slicing.width
        dropped = slowly.take()
        if dropped is None:
            return []
        met = take_below(self.store, MATCHED[side], pl.col(TIME), slowly.left, width)
        return self._dropped(side, dropped, met)

    def _dropped_below(self, side: int) -> int:
        """Return the time below which no row is held any more of a side, or of both if their times
        are one column."""
        if not self._slowly:
            return self._threshold(side)
        name = self._shape.out_times[side]
        sides = (each for each in (0, 1) if self._shape.out_times[each] == name)
        return min(
            self._slowly[each].left if each in self._slowly else self._threshold(each)
            for each in sides
        )

    def _dropped(self, side: int, rows: Chunk | None, met: Chunk | None) -> list[Element]:
        """Return the output of an outer join for rows it drops: those without a match."""
        if rows is None or not self._shape.keeps(side):
            return []
        alone = rows if met is None else rows.join(met, on=IDS[side], how="anti")
        return [self._shape.put_out(alone)] if alone.height else []

    # ---- promises per group ----------------------------------------------------------------

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Purge the other side's rows of these groups; return what follows for the groups."""
        if promise.attribute == ENDED:
            return self._report_ended(port, promise)
        inside = self._inside[port]
        names = inside if port == 0 else {key: self._outside(key) for key in inside}
        if promise.attribute != self._shape.times[port] or not self._by:
            return []
        if set(promise.keys) != set(names.values()):
            return []
        keys = promise.marks.select(pl.col(name).alias(key) for key, name in names.items())
        places = self._groups.admit(keys)
        before = np.maximum(self._groups.get(HELD[port], places), self._marks[port])
        marks = promise.marks[MARK].to_numpy()
        moved = marks > before
        if not moved.any():
            return []
        places, before = places[moved], before[moved]
        self._groups.put(HELD[port], places, marks[moved])
        low = self._reach.earliest(port, int(before.min()))
        if 1 - port in self._slowly:
            low = min(low, self._slowly[1 - port].left)
        out = [*self._purge_groups(1 - port, places, low), *self._promise_groups(places)]
        self._groups.remove(self._groups.keys(places[self._over(places)]))
        return out

    def _over(self, places: Numbers) -> NDArray[np.bool_]:
        """Return which groups have ended on both sides."""
        marks = (self._effective(side, places) for side in (0, 1))
        over: NDArray[np.bool_] = np.minimum(*marks) == END_OF_TIME
        return over

    def _report_ended(self, port: int, promise: GroupPunctuation) -> list[Element]:
        """Return the report that keys of an input have ended, with the names of left columns."""
        left = {pair[port]: pair[0] for pair in self._shape.on}
        if not set(promise.keys) <= set(left):
            return []
        names = {key: left[key] for key in promise.keys}
        return [GroupPunctuation(ENDED, promise.marks.rename(names))]

    def _outside(self, key: str) -> str:
        """Return the right column that must equal a left one."""
        return next(right for left, right in self._shape.on if left == key)

    def _effective(self, side: int, places: Numbers) -> Ticks:
        return np.maximum(self._groups.get(HELD[side], places), self._marks[side])

    def _thresholds(self, side: int, places: Numbers) -> Ticks:
        """Return the times below which rows of a side in some groups match no row still to come."""
        return self._reach.earliest_all(1 - side, self._effective(1 - side, places))

    def _purge_groups(self, side: int, places: Numbers, low: int) -> list[Element]:
        """Drop rows of some groups that their marks have passed; none are kept below ``low``."""
        marks = self._groups.keys(places).rename(self._inside[side])
        marks = marks.with_columns(pl.Series(MARK, self._thresholds(side, places)))
        width, time = self._slicing.width, self._shape.inside_time(side)
        gone = take_group_rows(self.store, ROWS[side], marks, time, width, low)
        met = None
        if self._shape.keeps(side):
            met = take_group_rows(self.store, MATCHED[side], marks, pl.col(TIME), width, low)
        return self._dropped(side, gone, met)

    @property
    def _outputs(self) -> list[tuple[int, str]]:
        """The sides whose time is in the output and of use there, with its name there."""
        awaited = self._out.awaited
        times = enumerate(self._shape.out_times)
        return [(side, name) for side, name in times if awaited is None or name in awaited]

    def _promise_all_groups(self) -> list[Element]:
        """Return the promises on groups that follow from the mark of a whole side."""
        if not self._groups.has_groups:
            return []
        self._groups.load()
        every = np.arange(len(self._groups))
        fading = self._fading()
        promises = self._promise_groups(every[~fading])
        passed = self._over(every)
        passed |= fading & np.logical_and.reduce(
            [self._groups.column(PROMISED[s]) <= self._out.of(name) for s, name in self._outputs]
        )
        self._groups.remove(self._groups.keys(every[passed]))
        return promises

    def _fading(self) -> NDArray[np.bool_]:
        """Return which groups have ended on a side, and are known on the other no better than the
        whole side: nothing more is promised of them, and they are dropped when the promises on the
        whole have caught up."""
        held = [self._groups.column(HELD[side]) for side in (0, 1)]
        fading: NDArray[np.bool_] = (held[0] == END_OF_TIME) | (held[1] == END_OF_TIME)
        for side, mark in enumerate(self._marks):
            fading &= (held[side] == END_OF_TIME) | (held[side] <= mark)
        return fading & ~self._over(np.arange(len(self._groups)))

    def _promise_groups(self, places: Numbers) -> list[Element]:
        if not all(self._shape.shows(key) for key in self._by):
            return []
        marks: dict[str, tuple[str, Ticks]] = {}
        for side, name in self._outputs:
            dropped = self._thresholds(side, places)
            if side in self._slowly:  # only a group's own marks drop its rows at once
                own = self._groups.get(HELD[1 - side], places)
                at_once = self._reach.earliest_all(1 - side, own)
                dropped = np.maximum(at_once, self._slowly[side].left)
            mark = np.minimum(self._effective(side, places), dropped)
            if name in marks:  # both times are one column
                both = np.minimum if self._slowly else np.maximum
                mark = both(mark, marks[name][1])
            marks[name] = (marks[name][0] if name in marks else PROMISED[side], mark)
        promises: list[Element] = []
        for name, (column, mark) in marks.items():
            whole = self._out.of(name)
            before = np.maximum(self._groups.get(column, places), whole)
            moved = (mark > before) & bool(self._open)
            if moved.any():
                self._groups.put(column, places[moved], mark[moved])
                keys = self._groups.keys(places[moved])
                frame = keys.with_columns(pl.Series(MARK, mark[moved]))
                promises.append(GroupPunctuation(name, frame, int(before[moved].min())))
        return promises

    # ---- promises on the whole -------------------------------------------------------------

    def _promise(self) -> list[Element]:
        promises: list[Element] = []
        for side in (0, 1):
            if side in self._shape.kind.whole:
                for known in self._received.of(side):
                    promises += self._out.advance(self._with_old_rows(side, known))
            else:
                time = self._shape.out_times[side]
                low = min(self._marks[side], self._dropped_below(side))
                promises += self._out.advance({time: low})
        if self._shape.kind.pairs:
            for left, right in product(self._received.of(0), self._received.of(1)):
                promises += self._out.advance(any_of(left.bounds, right.bounds))
        return promises

    def _with_old_rows(self, side: int, known: Punctuation) -> dict[str, int]:
        """Return the bounds on the output that follow from a promise of one input.

        They also hold for pairs whose row of that input has come already.
        """
        bounds = dict(known.bounds)
        threshold, time = self._dropped_below(side), self._shape.out_times[side]
        if time in bounds:
            return any_of(known.bounds, ((time, threshold),))
        ((name, mark), *others) = known.bounds
        if others:  # the joint promise that includes the time implies this one
            return {}
        return {name: min(mark, moved(threshold, -self._behind[name]))}

    # ---- requests and saving ---------------------------------------------------------------

    def releases(self) -> Sequence[Release]:
        """Return the marks that release rows of an outer side: past the last time of a partner."""
        return self._released([side for side in (0, 1) if self._shape.keeps(side)])

    def _released(self, sides: Sequence[int]) -> list[Release]:
        shape, reach = self._shape, self._reach
        names = [tuple(self._by), tuple(self._outside(key) for key in self._by)]
        ticks = [shape.domain.to_ticks(pl.col(time)) for time in shape.times]
        return [
            Release(
                side, ticks[side], names[side], shape.times[1 - side], 1, 1, awaits=1 - side,
                names=names[1 - side], moved=partial(reach.latest, side),
            )
            for side in sides if self._by
        ]  # fmt: skip

    def input_keys(self, port: int, names: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the left columns, or the right columns that must equal them."""
        if not set(names) <= set(self._by):
            return None
        return names if port == 0 else tuple(map(self._outside, names))

    def requests(self) -> Sequence[Request]:
        """Request the mark at which the earliest row of an outer side has no partner to come."""
        return self._missing([side for side in (0, 1) if self._shape.keeps(side)])

    def _missing(self, sides: Sequence[int]) -> list[Request]:
        requests = []
        for side in sides:
            slices, slowly = self.store.slices(ROWS[side]), self._slowly.get(side)
            if slowly is not None and slowly.pending:
                requests.append(Request(1 - side, self._shape.times[1 - side], slowly.deadline))
            elif slices:
                rows = read(self.store, ROWS[side], slices[0], slices[0] + 1)
                assert rows is not None
                least = int(rows.select(self._shape.inside_time(side).min()).item())
                time = self._shape.times[1 - side]
                requests.append(Request(1 - side, time, self._reach.latest(side, least) + 1))
        return requests

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Request the side's own mark, and the other side's a reach further."""
        return self.needs_any([(attribute, mark)])

    def needs_any(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Request]:
        """Request the bounds of each side; for bounds on one side only, also the mark of the other
        side, a reach further.

        For a column that may be behind its side's time, the other side's mark is higher by as many
        ticks.
        """
        inside = [{out: name for name, out in self._names[side].items()} for side in (0, 1)]
        parts = [[(inside[s][n], mark) for n, mark in bounds if n in inside[s]] for s in (0, 1)]
        requests = [Request.any_of(side, parts[side]) for side in (0, 1) if parts[side]]
        for side in (0, 1):
            if parts[side] and (not parts[1 - side] or not self._shape.kind.pairs):
                furthest = max(
                    mark + self._behind.get(self._names[side][name], 0)
                    for name, mark in parts[side]
                )
                further = self._reach.latest(side, furthest - 1) + 1
                further += self._slowly[side].bound if side in self._slowly else 0
                requests.append(Request(1 - side, self._shape.times[1 - side], further))
        return self._received.missing(requests, self._open)

    # ---- feedback --------------------------------------------------------------------------

    def forget(self, floor: Floor) -> None:
        """Drop the rows that only results below the floor need."""
        super().forget(floor)
        for side, own in enumerate(self._for_results()):
            if self._shape.times[side] in own:
                least, width = own[self._shape.times[side]], self._slicing.width
                take_below(self.store, ROWS[side], self._shape.inside_time(side), least, width)
                take_below(self.store, MATCHED[side], pl.col(TIME), least, width)

    def floors(self) -> Sequence[Floor]:
        """Return what results need of each side, and what the rows of the other side can match."""
        return list(map(raised, self._for_results(), self._for_partners()))

    def _for_results(self) -> list[dict[str, int]]:
        """Return the floor of each side that follows from that of the results."""
        shape = self._shape
        found: list[dict[str, int]] = [{}, {}]
        for side in shape.kind.shown:
            if shape.keeps(1 - side):
                continue
            own = self._names[side].items()
            floor = {name: self.floor[out] for name, out in own if out in self.floor}
            found[side] = raised(found[side], floor)
            if shape.times[side] in floor:
                reached = self._reach.earliest(side, floor[shape.times[side]])
                found[1 - side] = raised(found[1 - side], {shape.times[1 - side]: reached})
        return found

    def _for_partners(self) -> list[dict[str, int]]:
        """Return the floor of each side that follows from the rows of the other, kept and to
        come."""
        found: list[dict[str, int]] = [{}, {}]
        for side in (0, 1):
            slices = self.store.slices(ROWS[1 - side])
            kept = slices[0] * self._slicing.width if slices else END_OF_TIME
            reached = self._reach.earliest(1 - side, min(kept, self._marks[1 - side]))
            if reached > self._marks[side] and not self._shape.keeps(side):
                found[side] = {self._shape.times[side]: reached}
        return found

    def marks(self) -> dict[str, int]:
        """Return the marks of both inputs."""
        return {f"{self._shape.times[side]}[{side}]": self._marks[side] for side in (0, 1)}

    def settle(self) -> None:
        """Write the marks of groups that moved to the store."""
        self._groups.settle()

    def snapshot(self) -> dict[str, Any]:
        """Return the marks of the inputs, the promises made, and the state of slices and groups."""
        return super().snapshot() | {
            "groups": self._groups.snapshot(),
            "marks": list(self._marks),
            "heard": self._received.snapshot(),
            "out": self._out.snapshot(),
            "ids": list(self._next_id),
            "slicing": self._slicing.snapshot(),
            "slowly": {side: each.snapshot() for side, each in self._slowly.items()},
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._marks = list(saved["marks"])
        self._out.restore(saved["out"])
        self._received.restore(saved["heard"])
        self._next_id = list(saved["ids"])
        self._groups.restore(saved["groups"])
        self._slicing.restore(saved["slicing"])
        for side, each in self._slowly.items():
            each.restore(saved["slowly"][side])
