"""The index of a chunk store, next to a plain list of addresses."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lowwater.state.index import ChunkIndex, ChunkKey

NAMES = ("seen", "held")
EDGES = st.one_of(st.none(), st.integers(-4, 4))


class AnyUse(RuleBasedStateMachine):
    """Entries are added, replaced, removed and restored in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.index: ChunkIndex[int] = ChunkIndex()
        self.model: dict[ChunkKey, int] = {}
        self.given = 0

    @rule(name=st.sampled_from(NAMES), slice_=st.integers(-3, 3), entry=st.integers())
    def add(self, name: str, slice_: int, entry: int) -> None:
        self.given += 1
        key = self.index.add(name, slice_, entry)
        assert key == (name, slice_, self.given), "an address is used once"
        self.model[key] = entry

    @precondition(lambda self: self.model)
    @rule(data=st.data(), entry=st.integers())
    def replace(self, data: Any, entry: int) -> None:
        key = data.draw(st.sampled_from(sorted(self.model)))
        self.index[key] = self.model[key] = entry

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def pop(self, data: Any) -> None:
        key = data.draw(st.sampled_from(sorted(self.model)))
        assert self.index.pop(key) == self.model.pop(key)

    @rule()
    def restore(self) -> None:
        self.index = ChunkIndex(self.index.entries, self.index.sequence)

    @rule(low=EDGES, high=EDGES)
    def look(self, low: int | None, high: int | None) -> None:
        for name in NAMES:
            keys = sorted(
                key
                for key in self.model
                if key.name == name
                and (low is None or low <= key.slice)
                and (high is None or key.slice < high)
            )
            assert self.index.scan(name, low, high) == keys
            assert self.index.slices(name, low, high) == sorted({key.slice for key in keys})

    @invariant()
    def holds_what_was_added(self) -> None:
        assert sorted(self.index) == sorted(self.model.values())
        for key, entry in self.model.items():
            assert self.index[key] == entry
            assert entry in self.index.of(key.name)
            assert entry in self.index.of(key.name, key.slice)
        assert all(held for slices in self.index.entries.values() for held in slices.values())


TestAnyUse = AnyUse.TestCase
