"""Requests for single groups: the marks of groups that operators wait for are traced to sources.

An engine hands :class:`Awaiting` every element that an operator takes in, and collects the requests
that changed. A request names a group of a source and the mark up to which the source should promise
it. Operators whose groups cannot be traced to groups of all their sources make requests on whole
streams.
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
    """A request to a source: it should promise an attribute of one of its groups up to a mark."""

    source: int
    attribute: str
    origin: Hashable
    """Identifies the request: a later one of the same origin and source replaces it."""
    group: Hashable
    mark: int | None
    """The mark in ticks; None withdraws the request."""


class Awaiting:
    """The requests of all members for single groups.

    ``groups`` are the columns of each source's groups, by source; ``on_demand`` the sources that
    make timestamps on demand.
    """

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
        """Return the sources whose groups these columns name; None if some source has no such
        groups."""
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
        """Return whether an operator makes all its requests for single groups."""
        return index in self._covered

    def holds(self, index: int) -> bool:
        """Return whether an operator waits for the mark of some group."""
        return any(self._waits.get(index, ()))

    def take(self, index: int, port: int, element: Element) -> None:
        """Note an element that an operator took in at an input."""
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
        """Yield the requests that changed since the last call."""
        touched, self._touched = self._touched, set()
        for index in touched:
            for number, waits in enumerate(self._waits[index]):
                for key, mark in waits.changed():
                    yield from self._changed(index, number, waits, key, mark)

    def _changed(
        self, index: int, number: int, waits: Waits, key: Any, mark: int | None
    ) -> Iterator[GroupRequest]:
        origin, requested = (index, number, key), dict[tuple[int, str], tuple[Hashable, int]]()
        port, names = waits.release.promised
        if mark is not None:
            request = Request(port, waits.release.attribute, mark)
            for source, attribute, further, group in self._traced(index, request, names, key):
                held = requested.get((source, attribute), (group, further))
                requested[source, attribute] = (group, max(further, held[1]))
        for place, group in self._placed.pop(origin, {}).items():
            if place not in requested:
                yield GroupRequest(*place, origin, group, None)
        if requested:
            self._placed[origin] = {place: group for place, (group, _) in requested.items()}
        for (source, attribute), (group, further) in requested.items():
            yield GroupRequest(source, attribute, origin, group, further)

    def _traced(
        self, index: int, request: Request, names: tuple[str, ...], key: Key
    ) -> Iterator[tuple[int, str, int, Hashable]]:
        """Follow a request for a group back to the sources it depends on; yield the source, its
        attribute, the mark and its group."""
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
        """Return the name of the source's group that rows with these keys belong to."""
        return channel_name([key[names.index(name)] for name in self._groups[source]])

    def snapshot(self) -> dict[str, list[dict[str, Any]]]:
        """Return the waiting rows and the marks that release them, by the slot of each operator."""
        return {
            self._members[index].part.slot: [each.snapshot() for each in waits]
            for index, waits in self._waits.items()
        }

    def restore(self, saved: Mapping[str, Sequence[dict[str, Any]]]) -> None:
        """Continue from a snapshot."""
        for index, waits in self._waits.items():
            for each, before in zip(
                waits, saved.get(self._members[index].part.slot, ()), strict=False
            ):
                each.restore(before)
            self._touched.add(index)
