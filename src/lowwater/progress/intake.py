"""The input operator (OOP §5.4): takes rows; returns kept rows, refused rows and punctuation.

There are two intakes. :class:`Intake` judges rows one after the other in arrival order: in the
embedded engine, and for a replay on Spark, whose log has an order. :class:`BatchIntake` judges the
rows of a batch without order by the marks before the batch, and then moves the marks by all of them
as if they had come in ascending order. So every reader of the same batch comes to the same verdict,
also when the batch is read again. Both apply the same rule (:mod:`~lowwater.progress.judgement`).

No clock is read here: the engine passes the time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from lowwater.errors import OptionError
from lowwater.progress.channel import Ticks
from lowwater.progress.demand import Demand
from lowwater.progress.digest import ATTRIBUTE, BOUNDS, TIME, digest
from lowwater.progress.ended import ENDED, EndedBefore
from lowwater.progress.group_tracker import GroupTracker
from lowwater.progress.joint import JOINT, Attributes, JointBefore
from lowwater.progress.judgement import ChannelRows, Judgement, Mask
from lowwater.progress.late import NOT_NEEDED, LateAccount, SideOutput
from lowwater.progress.marks import FrameMarks, MarksBefore, NamedMarks
from lowwater.progress.producer import PromisedMarks
from lowwater.progress.punctuator import Promises, Punctuator
from lowwater.progress.rows import JudgedRows, conform, pure_rows
from lowwater.progress.spec import StreamSpec, channel_name
from lowwater.progress.tracker import Tracker
from lowwater.state.store import ChunkStore
from lowwater.stream.element import BEGINNING, MARK, SEQUENCE, Chunk
from lowwater.stream.floor import Floor, needed_rows


@dataclass(slots=True)
class IntakeResult:
    """The result of taking a chunk in."""

    rows: Chunk
    """The rows that were kept."""
    refused: Chunk | None
    """The rows for the side output; None if there are none."""
    promises: Promises
    """The punctuation that follows."""
    came: int
    """Number of rows that came; rows that are nothing but punctuation are not counted."""


class StreamIntake(Punctuator):
    """The base of both intakes: progress, row numbers, and the side output.

    The arguments are those of :class:`~lowwater.progress.punctuator.Punctuator`.
    """

    def __init__(
        self,
        spec: StreamSpec,
        demands: Mapping[str, Demand],
        announced: Iterable[Hashable] = (),
        store: ChunkStore | None = None,
    ):
        super().__init__(spec, demands, announced, store)
        self.account = LateAccount(spec.name)
        """Counts of the rows that were not passed on."""
        self.side_output = SideOutput(spec, self.account)
        self.floor: Floor = {}
        """The floor of the rows that some operator needs. Rows below it move marks like all others;
        they are counted, and neither judged nor let in."""

    def number(self, chunk: Chunk) -> Chunk:
        """Number the rows of a chunk in order, if an operator needs row numbers.

        Rows that will be refused get a number too; a pure punctuation gets none of its own.
        """
        if not self.numbered:
            return chunk
        numbers = self.sequence + np.cumsum(~pure_rows(self.spec, chunk))
        self.sequence = int(numbers[-1]) if chunk.height else self.sequence
        return chunk.with_columns(pl.Series(SEQUENCE, numbers - 1, dtype=pl.Int64))

    def refused(self) -> Chunk | None:
        """Return the rows for the side output since the last call; None if there are none."""
        refused = self.side_output.take_rows()
        return refused.drop(SEQUENCE) if refused is not None and self.numbered else refused

    def _kept(self, chunk: Chunk, keep: Mask) -> Chunk:
        """Return the rows of a chunk for which ``keep`` is true and that some operator needs."""
        return self.needed(chunk if keep.all() else chunk.filter(pl.Series(keep)))

    def needed(self, chunk: Chunk) -> Chunk:
        """Return the rows of a chunk that some operator needs, and count the others."""
        found = needed_rows(chunk, self.floor)
        if found.height < chunk.height:
            self.account.add(None, NOT_NEEDED, chunk.height - found.height, 0.0, 0.0)
        return found

    def nothing_refused(self) -> Chunk:
        """Return a side output with its columns and no rows."""
        return self.side_output.empty()

    def take_promise(self, promised: PromisedMarks) -> Promises:
        """Take a promise that the producer makes outside its rows; return what follows."""
        if promised.name is not None and promised.name in self.ended_names:
            self.side_output.warn_ended(promised.name)
            return []
        if promised.ends:
            ends = self.end(self.ended_names.frame_of(promised.name))
            return [*self.promises(), *ends]
        if len(promised.bounds) > 1:
            return self._promise_jointly(promised)
        ((attribute, mark),) = promised.bounds.items()
        return self.promise(attribute, mark, promised.name)

    def promise(self, attribute: str, mark: int, name: Hashable = None) -> Promises:
        """Take a mark, in ticks, that the producer sends outside its rows.

        ``name`` is the channel or group; None for all of them. One that is not known is announced.
        """
        tracker = self._tracker_of(attribute)
        if name is None:
            if mark < tracker.mark:
                self.side_output.warn_backward(attribute, 1, self.shown_mark(attribute))
            tracker.promise_all(mark)
            return self.promises()
        for each in self.trackers.values():
            each.announce(name)
        held = tracker.mark_of(name)
        if mark < held:
            self.side_output.warn_backward(attribute, 1, self.spec.domains[attribute].show(held))
        tracker.promise_one(name, mark)
        self.reschedule(attribute)
        return self.promises()

    def _tracker_of(self, attribute: str) -> Tracker | GroupTracker:
        """Return the tracker of an attribute; raise an error if nothing is promised on it."""
        tracker = self.trackers.get(attribute)
        if tracker is None:
            why = f"; it makes promises on {', '.join(self.trackers)}"
            if self.spec.stamp == "latent":
                why = ", because its timestamps are latent"
            elif not self.trackers:
                why = ", because it is declared with lw.unpromised()"
            raise OptionError(f"stream {self.spec.name!r} makes no promises on {attribute!r}{why}")
        return tracker

    def _promise_jointly(self, promised: PromisedMarks) -> Promises:
        """Take a joint promise that the producer makes outside its rows."""
        for attribute in promised.bounds:
            self._tracker_of(attribute)
        attributes = tuple(sorted(promised.bounds))
        bounds = tuple(promised.bounds[name] for name in attributes)
        if promised.name is None:
            ignored = self.joint.promise_all(attributes, bounds, self.channel_names)
        else:
            for each in self.trackers.values():
                each.announce(promised.name)
            ignored = self.joint.take(attributes, bounds, [promised.name])
        self.warn_jointly_backward(attributes, ignored)
        return self.promises()

    def warn_jointly_backward(self, attributes: Attributes, ignored: int) -> None:
        """Warn of joint promises that would have set a bound back."""
        if ignored:
            whole = self.joint.promised(self.channel_names).get(attributes)
            domains = (self.spec.domains[name] for name in attributes)
            shown = [each.show(b) for each, b in zip(domains, whole or (), strict=False)]
            held = " or ".join(map(str, shown)) or "none for the whole stream"
            self.side_output.warn_backward(" or ".join(attributes), ignored, held)

    def refuse_faults(self, rows: JudgedRows) -> None:
        """Pass rows that cannot be judged, or come after an end, to the side output."""
        if rows.over is not None and rows.over.any():
            self.side_output.add_after_end(rows.chunk, rows.over)
        for fault in rows.faults:
            self.side_output.add_unusable(rows.chunk, fault.rows, fault.reason, fault.detail)

    def producer_marks(self, rows: JudgedRows, attribute: str) -> Ticks | None:
        """Return the producer's marks in ticks, after a warning of those out of range."""
        found = rows.producer_marks(attribute)
        if found is None:
            return None
        marks, out_of_range = found
        if out_of_range:
            self.side_output.warn_out_of_range(attribute, out_of_range)
        return marks

    def warn_stale(self, attribute: str) -> None:
        """Warn of the channels that became stale with the last rows, or caught up."""
        changes = self.trackers[attribute].take_stale_changes()
        if changes:
            rate = self.spec.domains[attribute].ticks_per_second
            self.side_output.warn_stale(attribute, changes, rate)


class Intake(StreamIntake):
    """Takes the rows of one source in, chunk by chunk, in arrival order."""

    def parts(self, chunk: Chunk) -> Iterator[slice]:
        """Yield the parts of a chunk that can be taken in at once, each when it is its turn.

        A part ends before a row whose mark depends on an end in it: before the first row of a new
        channel, which joins at the mark of the stream, or of one that begins anew.
        """
        start = 0
        if not chunk.height:
            yield slice(0, 0)
        while start < chunk.height:
            rest = chunk.slice(start)
            found = self.ended_names.find(rest) if self._may_end(rest) else None
            stop = rest.height if found is None else found.rows
            first = self._first_joint(rest, stop if found is None else found.first)
            if first < stop:
                stop = min(stop, self._first_new(rest, first))
            yield slice(start, start + stop)
            start += stop

    def _first_joint(self, chunk: Chunk, before: int) -> int:
        """Return the first row that promises jointly, if it is before a row; else that row."""
        names = self.spec.joint if self.spec.channel else ()
        marks = [self.spec.contracts[name].mark_column for name in names]
        if not marks:
            return before
        many = pl.sum_horizontal(pl.col(each).is_not_null() for each in marks if each) > 1
        first = chunk.select(many.arg_max().alias("first"), many.any().alias("any")).row(0)
        return min(before, first[0]) if first[1] else before

    def _may_end(self, chunk: Chunk) -> bool:
        flag = self.spec.ended
        return bool(self.ended_names) or (flag is not None and bool(chunk[flag].any()))

    def _first_new(self, chunk: Chunk, after: int) -> int:
        """Return the first row after another that a new channel begins with; past the end if none
        does, or if a new one joins without a mark."""
        trackers = [each for each in self.trackers.values() if each.linear]
        keys = list(self.spec.key_columns)
        if not trackers:
            return chunk.height
        first = chunk.select(keys).with_row_index("__row").group_by(keys).agg(pl.col("__row").min())
        later = first.filter(pl.col("__row") > after).drop_nulls(keys)
        new = ~trackers[0].knows(later.select(keys))
        return int(later.filter(pl.Series(new))["__row"].min()) if new.any() else chunk.height  # type: ignore[arg-type]

    def take(
        self, chunk: Chunk, now: int, arrivals: Ticks | None = None, until: int | None = None
    ) -> IntakeResult:
        """Take a chunk in; all clock times are nanoseconds.

        ``now`` is the engine's clock. ``arrivals`` are the times at which the rows arrived, if the
        source has them. Later rows of an internally stamped stream arrive at ``until`` or after it;
        None stands for ``now``.
        """
        chunk = self.number(conform(self.spec, chunk, now, arrivals))
        came = chunk.height - int(pure_rows(self.spec, chunk).sum())
        over = self.ended_names.find(chunk) if self._may_end(chunk) else None
        if self.spec.stamp == "external":
            rows = self._judge(
                JudgedRows(self.spec, chunk, None if over is None else over.over), now
            )
        else:  # a clock never goes back: nothing to judge
            rows = self.needed(chunk)
            self.promise_all((now if until is None else until) // 1_000)
        ends = self.end(over.keys) if over is not None else []
        promises = [*self.row_promises(), *ends]
        return IntakeResult(rows, self.refused(), promises, came)

    def _judge(self, rows: JudgedRows, now: int) -> Chunk:
        """Return the rows that are not refused, and move the marks by all usable rows."""
        chunk, usable, keep = rows.chunk, rows.usable, rows.timed
        self.refuse_faults(rows)
        if self.trackers:
            keys = self.spec.key_columns
            order = ChannelRows.of(chunk, keys, usable)
            timed = ChannelRows.of(chunk, keys, rows.timed) if rows.pure.any() else order
            verdicts = []
            for attribute, tracker in self.trackers.items():
                times, marks = rows.times(attribute), self.producer_marks(rows, attribute)
                if marks is None:
                    judged = tracker.observe(times, times, timed, now)
                else:  # a pure punctuation is a mark, too
                    judged = tracker.observe(times, marks, order, now)
                verdicts.append((attribute, times, judged))
                self.reschedule(attribute)
            if self.spec.late == "fail":  # the error names the row that is late first
                verdicts.sort(key=lambda each: _first(keep & each[2].late(each[1])))
            for attribute, times, judged in verdicts:
                if judged.backward:
                    held = self.shown_mark(attribute)
                    self.side_output.warn_backward(attribute, judged.backward, held)
                self.side_output.add_judged(chunk, attribute, times, judged, keep)
                self.warn_stale(attribute)
            if self.joint or self.spec.joint:
                self._judge_jointly(rows, order, keep)
        return self._kept(chunk, keep)

    def _judge_jointly(self, rows: JudgedRows, order: ChannelRows, keep: Mask) -> None:
        """Take the joint promises in rows; ``keep`` becomes false for the rows that break one."""
        times = {name: rows.times(name) for name in self.trackers}
        found = list(self.joint.observe(times, rows.joint_promises(), order))
        for attributes, late, before, ignored in found:
            self.side_output.add_broken(rows.chunk, attributes[0], times, before, late, keep)
            self.warn_jointly_backward(attributes, ignored)
        self.joint.promised(self.channel_names)


class BatchIntake(StreamIntake):
    """Takes the rows of one source in, batch by batch, where a batch has no order.

    For each batch: :meth:`digest` and :meth:`judge` its rows, in any number of parts and on any
    process that has the marks before; then :meth:`absorb` all digests together. An end in a batch
    holds after all rows of the batch.
    """

    _ending: Chunk | None = None  # the channels that end with this batch

    def marks_before(self) -> dict[str, MarksBefore | EndedBefore | JointBefore]:
        """Return, by attribute, the marks by which rows of the coming batch are judged; under
        ``ENDED`` the names of the channels or groups that have ended."""
        marks: dict[str, MarksBefore | EndedBefore | JointBefore] = {
            attribute: tracker.marks_before() for attribute, tracker in self.trackers.items()
        }
        return marks | self._ended_before() | self._joint_before()

    def marks_after(self) -> dict[str, NamedMarks | FrameMarks | EndedBefore | JointBefore]:
        """Return the marks that hold now, as values that can be sent to readers elsewhere."""
        marks: dict[str, NamedMarks | FrameMarks | EndedBefore | JointBefore] = {
            attribute: tracker.marks_after() for attribute, tracker in self.trackers.items()
        }
        return marks | self._ended_before() | self._joint_before()

    def _ended_before(self) -> dict[str, EndedBefore]:
        return {ENDED: self.ended_names.before} if self.spec.ended is not None else {}

    def _joint_before(self) -> dict[str, JointBefore]:
        return {JOINT: self.joint.before} if self.spec.joint else {}

    def row_promises(self) -> Promises:
        """Return the punctuation due after the rows of a batch, and after the ends in it."""
        ends: Promises = []
        if self._ending is not None:
            first = next(iter(self.trackers.values()))  # the one furthest ahead ends last
            order = np.argsort(first.marks_of(self._ending), kind="stable")
            ends = self.end(self._ending[order])
        self._ending = None
        return [*super().row_promises(), *ends]

    def conform(self, chunk: Chunk, now: int, arrivals: Ticks | None = None) -> Chunk:
        """Return a chunk with its declared types; see :func:`~lowwater.progress.rows.conform`."""
        return conform(self.spec, chunk, now, arrivals)

    def digest(self, chunk: Chunk) -> Chunk | None:
        """Return the digest of a conformed chunk; None if its rows have no times of their own."""
        if self.spec.stamp != "external" or not self.trackers:
            return None
        return digest(JudgedRows(self.spec, chunk), self.ended_names.ending(chunk))

    def judge(
        self,
        chunk: Chunk,
        before: Mapping[str, MarksBefore | EndedBefore | JointBefore],
        leaps: dict[str, Chunk] | None = None,
    ) -> Chunk:
        """Return the rows of a conformed chunk that are not refused.

        ``before`` are the marks before the batch; ``leaps`` the leaps that :meth:`absorb` found in
        the whole batch, None if there are none.
        """
        chunk = self.number(chunk)
        if self.spec.stamp != "external":
            return self.needed(chunk)
        ended = before.get(ENDED)
        over = ended.of(chunk) if isinstance(ended, EndedBefore) else None
        rows = JudgedRows(self.spec, chunk, over)
        self.refuse_faults(rows)
        keep = rows.timed
        for attribute, marks in before.items():
            if isinstance(marks, EndedBefore | JointBefore):
                continue
            times = rows.times(attribute)
            self.producer_marks(rows, attribute)
            far = self._far(chunk, attribute, (leaps or {}).get(attribute))
            if far is None and (not len(times) or int(times.min()) >= marks.highest):
                continue
            if far is None:
                far = np.zeros(len(times), bool)
            judged = Judgement(self._marks_of(chunk, marks), far)
            self.side_output.add_judged(chunk, attribute, times, judged, keep)
        joint = before.get(JOINT)
        if isinstance(joint, JointBefore) and joint.sets:
            every = {name: rows.times(name) for name in self.trackers}
            order = ChannelRows.of(chunk, self.spec.key_columns, keep)
            for attribute, late, bounds in joint.late(every, order):
                self.side_output.add_broken(chunk, attribute, every, bounds, late, keep)
        return self._kept(chunk, keep)

    def _marks_of(self, chunk: Chunk, marks: MarksBefore) -> Ticks:
        """Return the mark of each row's channel."""
        keys = list(self.spec.key_columns)
        if not keys:
            mark = marks.known.get(None, marks.others)
            return np.full(chunk.height, mark, dtype=np.int64)
        named = chunk.select(keys)
        once = named.unique()
        known = once.with_columns(pl.Series(MARK, marks.of(once)))
        found = named.join(known, on=keys, how="left", nulls_equal=True, maintain_order="left")
        return found[MARK].to_numpy()

    def _far(self, chunk: Chunk, attribute: str, leaps: Chunk | None) -> Mask | None:
        """Return the rows that are among the leaps found in the batch; None if none were found."""
        if leaps is None or not leaps.height:
            return None
        keys = [*self.spec.key_columns, TIME]
        times = self.spec.domains[attribute].ticks_of(chunk[attribute]).alias(TIME)
        marked = leaps.select(keys).unique().with_columns(pl.lit(True).alias("__far"))
        rows = chunk.select(*self.spec.key_columns, times)
        found = rows.join(marked, on=keys, how="left", nulls_equal=True, maintain_order="left")
        return found["__far"].fill_null(False).to_numpy()

    def absorb(self, found: Chunk | None, now: int, rows: int) -> dict[str, Chunk]:
        """Move the marks by the digest of a whole batch, and return the leaps by attribute.

        ``found`` is the digest, None if there is none; ``now`` is the clock time in nanoseconds;
        ``rows`` is the number of rows of the batch.
        """
        if self.spec.stamp != "external":
            if rows:
                self.promise_all(now // 1_000)
            return {}
        leaps: dict[str, Chunk] = {}
        if found is None or not found.height:
            return leaps
        if self.spec.ended is not None:
            found = found.filter(~pl.Series(self.ended_names.before.of(found)))
            keys = list(self.spec.key_columns)
            ending = found.filter(pl.col(ATTRIBUTE) == ENDED).select(keys).unique().sort(keys)
            self._ending = ending if ending.height else None
        if self.spec.joint:
            self._absorb_joint(found.filter(pl.col(ATTRIBUTE) == JOINT))
        for attribute, tracker in self.trackers.items():
            part = found.filter(pl.col(ATTRIBUTE) == attribute).sort(MARK, TIME)
            before = self.shown_mark(attribute)
            order = ChannelRows.of(part, self.spec.key_columns, np.ones(part.height, bool))
            judged = tracker.absorb(part[TIME].to_numpy(), part[MARK].to_numpy(), order, now)
            if judged.backward:
                self.side_output.warn_backward(attribute, judged.backward, before)
            if judged.strays:
                self.side_output.warn_strays(attribute, judged.strays)
            if judged.deficit is not None:
                self.side_output.warn_deficit(attribute, judged.deficit)
            self.warn_stale(attribute)
            if judged.leaps.any():
                far = part.filter(pl.Series(judged.leaps))
                leaps[attribute] = far.select(*self.spec.key_columns, TIME)
        return leaps

    def _absorb_joint(self, found: Chunk) -> None:
        """Take the joint promises of a batch, in ascending order of their bounds."""
        names, ignored = self.spec.joint, dict[Attributes, int]()
        keys = found.select(self.spec.key_columns).rows() if self.spec.key_columns else None
        sent = [
            (bounds, None if keys is None else channel_name(keys[at]))
            for at, bounds in enumerate(found[BOUNDS].to_list())
        ]
        for bounds, name in sorted(sent, key=lambda each: [b or BEGINNING for b in each[0]]):
            made = {n: b for n, b in sorted(zip(names, bounds, strict=True)) if b is not None}
            attributes = tuple(made)
            back = self.joint.take(attributes, tuple(made.values()), [name])
            ignored[attributes] = ignored.get(attributes, 0) + back
        for attributes, many in ignored.items():
            self.warn_jointly_backward(attributes, many)


def _first(mask: Mask) -> int:
    """Return the first position that is true; past the end if none is."""
    return int(mask.argmax()) if mask.any() else len(mask)
