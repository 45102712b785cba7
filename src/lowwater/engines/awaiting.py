"""What the operators of a graph await of single groups, and of which sources.

An engine shows every element that an operator takes in, and collects what has changed: which group
of which source is to be promised how far, for whom. Operators whose groups cannot be traced to
groups of all their sources go by requests on whole streams, as do those that need such promises.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from lowwater.engines.members import Member
from lowwater.operators.kernel import Request
from lowwater.operators.waiting import Waits
from lowwater.progress.spec import channel_name
from lowwater.stream.element import Element, End

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """A source is asked to promise an attribute of one group up to a mark; None: no longer."""

    source: int
    attribute: str
    origin: Hashable
    group: Hashable
    mark: int | None


class Awaiting:
    """Follows what is awaited of groups."""

    def __init__(
        self,
        members: Mapping[int, Member],
        groups: Mapping[int, tuple[str, ...]],
        on_demand: frozenset[int],
    ):
        self._members, self._groups = members, groups
        self._waits: dict[int, list[Waits]] = {}
        self._covered: set[int] = set()
        self._touched: set[int] = set()
        self._placed: dict[Hashable, dict[tuple[int, str], Hashable]] = {}
        for index, member in members.items():
            inputs = member.part.inputs
            releases = member.call(member.kernel.releases)
            traced = [
                release
                for release in releases
                for port, names in [release.promised]
                if (sources := self._sources(inputs[port], names)) is not None
                and not on_demand.isdisjoint(sources)
            ]
            if traced:
                self._waits[index] = [Waits(release) for release in traced]
                member.awaiting = self
            if traced and len(traced) == len(releases) and len(inputs) == 1:
                self._covered.add(index)

    def _sources(self, index: int, names: tuple[str, ...]) -> list[int] | None:
        """The sources whose groups these columns name; None if some source has no such groups."""
        member = self._members.get(index)
        if member is None:
            groups = self._groups.get(index)
            return [index] if groups and set(groups) <= set(names) else None
        found: list[int] = []
        for port, source in enumerate(member.part.inputs):
            before = member.call(member.kernel.input_keys, port, names)
            below = None if before is None else self._sources(source, before)
            if below is None:
                return None
            found += below
        return found

    def covers(self, index: int) -> bool:
        """Whether all that an operator awaits is requested of single groups."""
        return index in self._covered

    def holds(self, index: int) -> bool:
        """Whether an operator awaits something of some group."""
        return any(self._waits.get(index, ()))

    def take(self, index: int, port: int, element: Element) -> None:
        """Take note of what an operator took in."""
        for waits in self._waits.get(index, ()):
            self._touched.add(index)
            if isinstance(element, pl.DataFrame):
                if port == waits.release.port:
                    waits.hold(element)
            elif isinstance(element, End):
                waits.end(port)
            else:
                waits.on_promise(port, element)

    def changes(self) -> Iterator[GroupRequest]:
        """What has changed since this was last called."""
        touched, self._touched = self._touched, set()
        for index in touched:
            for number, waits in enumerate(self._waits[index]):
                for key, mark in waits.changed():
                    yield from self._changed(index, number, waits, key, mark)

    def _changed(
        self, index: int, number: int, waits: Waits, key: Any, mark: int | None
    ) -> Iterator[GroupRequest]:
        origin, wanted = (index, number, key), dict[tuple[int, str], tuple[Hashable, int]]()
        port, names = waits.release.promised
        if mark is not None:
            request = Request(port, waits.release.attribute, mark)
            for source, attribute, further, group in self._traced(index, request, names, key):
                held = wanted.get((source, attribute), (group, further))
                wanted[source, attribute] = (group, max(further, held[1]))
        for place, group in self._placed.pop(origin, {}).items():
            if place not in wanted:
                yield GroupRequest(*place, origin, group, None)
        if wanted:
            self._placed[origin] = {place: group for place, (group, _) in wanted.items()}
        for (source, attribute), (group, further) in wanted.items():
            yield GroupRequest(source, attribute, origin, group, further)

    def _traced(
        self, index: int, request: Request, names: tuple[str, ...], key: Key
    ) -> Iterator[tuple[int, str, int, Hashable]]:
        """From what an operator awaits of a group to the sources it depends on."""
        source = self._members[index].part.inputs[request.port]
        member = self._members.get(source)
        if member is None:
            for attribute, mark in request.bounds:
                yield source, attribute, mark, self._group(source, names, key)
            return
        for each in member.call(member.kernel.backtrack, request):
            before = member.call(member.kernel.input_keys, each.port, names)
            assert before is not None
            yield from self._traced(source, each, before, key)

    def _group(self, source: int, names: Sequence[str], key: Key) -> Hashable:
        """The name of a source's group in which rows with some keys are."""
        return channel_name([key[names.index(name)] for name in self._groups[source]])

    def snapshot(self) -> dict[str, list[dict[str, Any]]]:
        """Everything needed to go on elsewhere."""
        return {
            self._members[index].part.slot: [each.snapshot() for each in waits]
            for index, waits in self._waits.items()
        }

    def restore(self, saved: Mapping[str, Sequence[dict[str, Any]]]) -> None:
        """Go on from a snapshot."""
        for index, waits in self._waits.items():
            for each, before in zip(
                waits, saved.get(self._members[index].part.slot, ()), strict=False
            ):
                each.restore(before)
            self._touched.add(index)
