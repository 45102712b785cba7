"""Feedback follows the floors of a graph from consumers to producers (feedback punctuation).

Each consumer states, for each of its inputs, the floor of the rows that it needs. A producer's
floor is the least of those of all its consumers: it drops only rows that none of them needs. So a
floor that rises at one operator, because a partner of a join ended or a user forgot answers, may
let the floors of all operators before it rise.

Invariant: floors only rise, and the rows of an operator at or above its floor are those that it
would emit if all floors were empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from lowwater.stream.element import Chunk
from lowwater.stream.floor import Floor, least, needed_rows, raised


class Feedback:
    """The floors of all arcs and producers of a graph.

    ``inputs`` are the producers that each operator reads; ``floors`` returns the floors that an
    operator states of its inputs. ``planned`` are the floors that follow from the query alone.
    ``leaving`` are the producers whose rows leave the graph, too. ``state`` hands a producer, an
    operator or a source, its floor.
    """

    def __init__(
        self,
        inputs: Mapping[int, Sequence[int]],
        floors: Callable[[int], Sequence[Floor]],
        planned: Mapping[int, Floor],
        leaving: Iterable[int],
        state: Callable[[int, Floor], None],
    ):
        self._inputs, self._of_inputs, self._state = inputs, floors, state
        self._arcs: dict[tuple[int, int], Floor] = {}
        self._outside: dict[int, Floor] = {index: {} for index in leaving}
        self._floors: dict[int, Floor] = {i: floor for i, floor in planned.items() if floor}
        self._consumers: dict[int, list[tuple[int, int]]] = {}
        for index, producers in inputs.items():
            for port, producer in enumerate(producers):
                self._arcs[index, port] = {}
                self._consumers.setdefault(producer, []).append((index, port))

    def begin(self) -> None:
        """State the floors that are known, as at the begin of a run or after a restart."""
        for index in sorted({*self._inputs, *self._floors}, reverse=True):
            if index in self._floors:
                self._state(index, self._floors[index])
            if index in self._inputs:
                self.refresh(index)

    def floor(self, index: int) -> Floor:
        """Return the floor of a producer."""
        return self._floors.get(index, {})

    def forget(self, index: int, floor: Floor) -> None:
        """Raise the floor of the rows that leave the graph from an operator or a source."""
        self._outside[index] = raised(self._outside[index], floor)
        self._ask(index)

    def needed(self, index: int, port: int, chunk: Chunk) -> Chunk:
        """Return the rows of an input that an operator needs."""
        return needed_rows(chunk, self._arcs[index, port])

    def refresh(self, index: int) -> None:
        """Take the floors that an operator states of its inputs."""
        stated = zip(self._inputs[index], self._of_inputs(index), strict=True)
        for port, (producer, floor) in enumerate(stated):
            before = self._arcs[index, port]
            after = raised(before, floor) if floor else before
            if after != before:
                self._arcs[index, port] = after
                self._ask(producer)

    def _ask(self, producer: int) -> None:
        """Raise the floor of a producer to the least of its consumers' floors."""
        consumers = [self._arcs[each] for each in self._consumers.get(producer, ())]
        if producer in self._outside:
            consumers.append(self._outside[producer])
        before = self.floor(producer)
        after = raised(before, least(consumers))
        if after != before:
            self._floors[producer] = after
            self._state(producer, after)
            if producer in self._inputs:
                self.refresh(producer)
