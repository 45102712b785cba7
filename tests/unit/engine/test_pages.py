"""Chunks on disk: they come back as they were, or an error names the file."""

from __future__ import annotations

import gc
from pathlib import Path

import polars as pl
import pytest

import lowwater as lw
from lowwater.engines.embedded.pages import PagedStore
from lowwater.state.store import read, take

ROWS = pl.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"], "c": [[1], [], None]})


def test_what_is_set_aside_is_on_disk_and_comes_back(tmp_path: Path) -> None:
    store = PagedStore(tmp_path)
    store.set_aside("far")
    store.put("near", 0, ROWS)
    in_memory = store.bytes
    store.put("far", 7, ROWS)
    store.put("far", 9, ROWS.reverse())
    assert (store.rows, store.bytes) == (3, in_memory)
    assert store.disk_rows == 6
    assert store.disk_bytes == sum(each.stat().st_size for each in tmp_path.rglob("*.arrow"))
    assert store.rows_in("far", 7) == 3
    assert store.slices("far") == [7, 9]
    found = read(store, "far")
    assert found is not None
    assert found.equals(pl.concat([ROWS, ROWS.reverse()]))
    assert store.round_trip > 0


def test_what_is_taken_is_gone_and_the_folder_goes_with_the_store(tmp_path: Path) -> None:
    store = PagedStore(tmp_path)
    store.set_aside("far")
    assert not list(tmp_path.iterdir())  # nothing is made before it is needed
    store.put("far", 0, ROWS)
    taken = take(store, "far")
    assert taken is not None
    assert taken.equals(ROWS)
    assert not list(tmp_path.rglob("*.arrow"))
    assert store.disk_rows == store.disk_bytes == 0
    store.put("far", 0, ROWS)
    del store
    gc.collect()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("harm", ["change", "cut", "remove"])
def test_a_page_that_is_not_what_was_written_is_noticed(tmp_path: Path, harm: str) -> None:
    store = PagedStore(tmp_path)
    store.set_aside("far")
    key = store.put("far", 0, ROWS)
    (page,) = tmp_path.rglob("*.arrow")
    body = bytearray(page.read_bytes())
    if harm == "change":
        body[len(body) // 2] ^= 1
        page.write_bytes(body)
    elif harm == "cut":
        page.write_bytes(body[:-10])
    else:
        page.unlink()
    with pytest.raises(lw.StateError, match=page.name):
        store.get(key)


def test_a_disk_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    store = PagedStore(tmp_path)
    store.set_aside("far")
    store.put("far", 0, ROWS)
    (page,) = tmp_path.rglob("*.arrow")
    page.unlink()
    page.parent.rmdir()
    with pytest.raises(lw.StateError, match="cannot be put on disk"):
        store.put("far", 1, ROWS)
