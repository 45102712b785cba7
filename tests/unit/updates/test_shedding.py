"""Random shedding: what is dropped is what there is no time for."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import lowwater as lw


@pytest.mark.parametrize(("cost", "kept"), [(1.0, 1.0), (2.0, 0.5), (4.0, 0.25)])
def test_as_many_updates_are_kept_as_there_is_time_for(cost: float, kept: float) -> None:
    count = 400
    came = pl.DataFrame({"at": np.arange(count), "n": np.arange(count), "key": [1] * count})
    updates = lw.stream(
        lw.replay(came, arrival="at"), name="u", time="n", update_key="key", schedule="shedding"
    )
    run = updates.run(tick=0, clock="virtual", charge=lw.per_row(f"{cost} seconds"))
    run.await_termination()
    assert run.metrics().rows_out / count == pytest.approx(kept, rel=0.05)
