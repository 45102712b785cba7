"""Whole numbers by group, in columns; made for many groups of which few change at a time.

Keys are found through a dictionary, numbers are read and written as arrays. ``settle`` writes the
groups that changed since it was last called into a chunk store; a table that is restored reads from
there only the groups that are looked up.

Invariant: a group is in the table, in the store, or in both. The numbers in the table take
precedence over those in the store, and those of a later chunk over those of an earlier one. Chunks
grow geometrically, so there are few. A group that is removed is gone from the table at once; if the
store has it, ``settle`` writes a row without numbers for it, which goes when no older chunk is
left.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.state.store import ChunkStore, take
from lowwater.stream.element import Chunk

Numbers = NDArray[np.int64]
UNKNOWN = -1
"""The place of a group that is not in the table."""
REMOVED = -(2**63)
"""The number in all columns of a chunk's row for a group that was removed."""


class GroupTable:
    """A row of numbers for each group; the *place* of a group is the number of its row.

    ``columns`` has the name and the default of each number. Groups that are not in the table are in
    ``store``, under ``name``; without a store all groups are in the table.
    """

    def __init__(
        self, columns: Mapping[str, int], store: ChunkStore | None = None, name: str = "groups"
    ):
        self._defaults = dict(columns)
        self._store, self._name = store, name
        self._keys: dict[str, pl.DataType] = {}
        self._start()

    def _start(self) -> None:
        self._names: list[Hashable] = []
        self._places: dict[Hashable, int] = {}
        self._values = {name: np.empty(0, np.int64) for name in self._defaults}
        self._changed = np.empty(0, bool)
        self._stored = np.empty(0, bool)  # groups that the store may have too
        self._removed: dict[Hashable, None] = {}  # groups to be removed from the store

    def __len__(self) -> int:
        """Return the number of groups in the table; those in the store alone are not counted."""
        return len(self._names)

    @property
    def has_groups(self) -> bool:
        """True if a group is, or has been, in the table or in the store."""
        return bool(self._keys)

    # ---- finding ---------------------------------------------------------------------------

    def find(self, keys: Chunk) -> Numbers:
        """Return the places of groups; ``UNKNOWN`` for those that are not there."""
        names = _names(keys)
        places = self._look_up(names)
        if self._store is not None and len(names) and (missing := places == UNKNOWN).any():
            self._fetch(keys.filter(pl.Series(missing)))
            places = self._look_up(names)
        return places

    def remove(self, keys: Chunk) -> dict[int, int]:
        """Remove groups; return the new places of the groups that had to move, by the old ones.

        Places of removed groups are ``UNKNOWN`` in the result.
        """
        return self.remove_at(self.find(keys))

    def remove_at(self, places: Numbers) -> dict[int, int]:
        """Remove the groups at some places, as :meth:`remove` does."""
        moved: dict[int, int] = {}
        origins: dict[int, int] = {}  # the old places of groups that moved, by the new ones
        for place in sorted({place for place in places.tolist() if place >= 0})[::-1]:
            name = self._names[place]
            if self._store is not None and self._stored[place]:
                self._removed[name] = None
            del self._places[name]
            moved[place] = UNKNOWN
            last = len(self._names) - 1
            if place < last:
                self._names[place] = self._names[last]
                self._places[self._names[place]] = place
                for held in (*self._values.values(), self._changed, self._stored):
                    held[place] = held[last]
                origins[place] = origin = origins.pop(last, last)
                moved[origin] = place
            self._names.pop()
        return moved

    def admit(self, keys: Chunk) -> Numbers:
        """Return the places of groups; new groups are added with the default numbers."""
        places = self.find(keys)
        missing = places == UNKNOWN
        if missing.any():
            self._keys = self._keys or dict(keys.schema)
            fresh = keys if missing.all() else keys.filter(pl.Series(missing))
            places[missing] = self._append(_names(fresh), changed=True)
        return places

    def add(self, names: Sequence[Hashable]) -> Numbers:
        """Add groups that are not there, with the default numbers, and return their places."""
        return self._append(names, changed=True)

    def _look_up(self, names: Sequence[Hashable]) -> Numbers:
        place = self._places.get
        return np.fromiter((place(name, UNKNOWN) for name in names), np.int64, len(names))

    def _append(self, names: Sequence[Hashable], changed: bool) -> Numbers:
        first, count = len(self._names), len(self._names) + len(names)
        self._names += names
        self._places.update(zip(names, range(first, count), strict=True))
        if count > len(self._changed):
            room = max(2 * len(self._changed), count, 64)
            self._changed = np.resize(self._changed, room)
            self._stored = np.resize(self._stored, room)
            self._values = {name: np.resize(held, room) for name, held in self._values.items()}
        self._changed[first:count] = changed
        self._stored[first:count] = not changed
        for at in range(first, count) if self._removed else ():
            if self._removed.pop(self._names[at], UNKNOWN) is None:
                self._stored[at] = True
        for name, default in self._defaults.items():
            self._values[name][first:count] = default
        return np.arange(first, count)

    def _fetch(self, missing: Chunk | None) -> None:
        """Load groups from the store into the table: those in ``missing``, or all for None."""
        assert self._store is not None
        gone = self._tombstones()
        for address in reversed(self._store.scan(self._name)):
            held = self._store.get(address)
            self._keys = self._keys or {
                name: dtype for name, dtype in held.schema.items() if name not in self._defaults
            }
            names = list(self._keys)
            found = held if gone is None else held.join(gone, on=names, how="anti")
            if missing is not None:
                found = found.join(missing, on=names, how="semi")
                missing = missing.join(found, on=names, how="anti")
            elif self._names:
                found = found.filter(pl.Series(self._look_up(_names(found.select(names)))) < 0)
            over = found.filter(pl.col(self._first) == REMOVED)
            if over.height:
                rows = over.select(names)
                gone = rows if gone is None else pl.concat([gone, rows])
                found = found.filter(pl.col(self._first) != REMOVED)
            if found.height:
                places = self._append(_names(found.select(names)), changed=False)
                for name in self._defaults:
                    self._values[name][places] = found[name].to_numpy()
            if missing is not None and not missing.height:
                return

    @property
    def _first(self) -> str:
        return next(iter(self._defaults))

    def _tombstones(self) -> Chunk | None:
        """Return the keys of the groups that are to be removed from the store; None if none are."""
        return self._keys_of(list(self._removed)) if self._removed else None

    def load(self) -> None:
        """Load all groups into the table."""
        if self._store is not None:
            self._fetch(None)

    def least(self, name: str) -> int | None:
        """Return the least number in a column, without loading groups; None without groups."""
        if self._store is None:
            return int(self.column(name).min()) if self._names else None
        whole = self.whole(name)
        if whole is None or not whole.height:
            return None
        return int(whole[name].min())  # type: ignore[arg-type]

    def least_of(self, name: str, beside: str, limit: int) -> tuple[int, list[Any]]:
        """Return how many groups there are and, for the ``limit`` groups that are least in column
        ``name``, the key and the numbers in ``name`` and ``beside``. Another thread may change the
        table meanwhile."""
        if self._store is not None:
            whole = self.whole(name, beside)
            if whole is None:
                return 0, []
            least = whole.bottom_k(limit, by=name).sort(name)
            names = _names(least.select(list(self._keys)))
            return whole.height, list(zip(names, least[name], least[beside], strict=True))
        names, held, also = self._names, self._values[name], self._values[beside]
        count = min(len(names), len(held), len(also))
        held = held[:count]
        places = np.argpartition(held, limit)[:limit] if count > limit else np.arange(count)
        ordered = places[np.argsort(held[places], kind="stable")].tolist()
        return count, [(names[at], int(held[at]), int(also[at])) for at in ordered]

    def whole(self, *numbers: str) -> Chunk | None:
        """Return the keys and some columns of all groups, without loading them; None if there are
        no groups."""
        columns = [*self._keys, *numbers]
        parts = []
        if self._store is not None:
            parts = [self._store.get(each) for each in self._store.scan(self._name)]
        changed = self._changes()
        if changed is not None:
            parts.append(changed)
        if not parts:
            return None
        together = parts[0]
        if len(parts) > 1:
            together = pl.concat(parts).unique(list(self._keys), keep="last")
        return together.filter(pl.col(self._first) != REMOVED).select(columns)

    # ---- reading and writing ---------------------------------------------------------------

    def column(self, name: str) -> Numbers:
        """Return the numbers of all groups in the table; only :meth:`put` may change them."""
        return self._values[name][: len(self._names)]

    def get(self, name: str, places: Numbers) -> Numbers:
        """Return the numbers of some groups; the default where the place is ``UNKNOWN``."""
        held = self._values[name]
        if not len(held):
            return np.full(len(places), self._defaults[name], np.int64)
        return np.where(places == UNKNOWN, self._defaults[name], held[places])

    def put(self, name: str, places: Numbers, values: Numbers | int) -> None:
        """Set the numbers of some groups."""
        self._values[name][places] = values
        self._changed[places] = True

    def keys(self, places: Numbers) -> Chunk:
        """Return the keys of some groups."""
        return self._keys_of([self._names[place] for place in places.tolist()])

    def _keys_of(self, names: list[Any]) -> Chunk:
        if len(self._keys) == 1:
            ((name, dtype),) = self._keys.items()
            return pl.DataFrame([pl.Series(name, names, dtype=dtype)])
        return pl.DataFrame(names, schema=self._keys, orient="row")

    def place(self, name: Hashable) -> int | None:
        """Return the place of a group, which is loaded if need be; None if there is no such
        group."""
        if name not in self._places:
            self.load()
        return self._places.get(name)

    def name(self, place: int) -> Hashable:
        """Return the key of one group: its value, or the tuple of several."""
        return self._names[place]

    # ---- saving ----------------------------------------------------------------------------

    def settle(self) -> None:
        """Write the groups that changed into the store, and remove those that were removed."""
        rows = self._changes()
        if self._store is None or rows is None:
            return
        older = list(reversed(self._store.scan(self._name)))
        count, merged = rows.height, [rows]
        while older:
            before = self._store.get(older[0])
            if before.height > 2 * count:
                break
            self._store.remove(older.pop(0))
            merged.append(before)
            count += before.height
        if len(merged) > 1:
            rows = pl.concat(reversed(merged)).unique(list(self._keys), keep="last")
        if not older:
            rows = rows.filter(pl.col(self._first) != REMOVED)
        if rows.height:
            self._store.put(self._name, 0, rows)
        changed = self._changed[: len(self._names)]
        self._stored[: len(self._names)][changed] = True
        changed[:] = False
        self._removed = {}

    def _changes(self) -> Chunk | None:
        """Return the rows of the groups that changed or were removed; None if there are none."""
        parts = []
        gone = self._tombstones()
        if gone is not None:
            none = (pl.lit(REMOVED, dtype=pl.Int64).alias(name) for name in self._defaults)
            parts.append(gone.with_columns(none))
        changed = np.flatnonzero(self._changed[: len(self._names)])
        if len(changed):
            parts.append(self._rows(changed))
        return pl.concat(parts) if parts else None

    def _rows(self, places: Numbers) -> Chunk:
        numbers = [pl.Series(name, held[places]) for name, held in self._values.items()]
        return self.keys(places).with_columns(numbers)

    def clear(self) -> None:
        """Drop all groups."""
        if self._store is not None:
            take(self._store, self._name)
        self._keys = {}
        self._start()

    def snapshot(self) -> dict[str, Any]:
        """Return the groups that changed since they were last written to the store."""
        return {"keys": dict(self._keys), "rows": self._changes()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._start()
        self._keys = dict(saved["keys"])
        rows = saved["rows"]
        if rows is not None:
            over = rows[self._first] == REMOVED
            gone, rows = rows.filter(over), rows.filter(~over)
            places = self._append(_names(rows.select(list(self._keys))), changed=True)
            self._stored[places] = True  # perhaps
            self._removed = dict.fromkeys(_names(gone.select(list(self._keys))))
            for name in self._defaults:
                self._values[name][places] = rows[name].to_numpy()


def _names(keys: Chunk) -> list[Any]:
    return keys.to_series().to_list() if keys.width == 1 else keys.rows()
