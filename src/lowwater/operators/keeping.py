"""In which form rows wait for their windows to close (OOP §5.5), and which is the smallest.

``panes``: one partial per pane and group, put together when a window is answered. ``windows``: one
partial per window and group. ``rows``: the rows themselves, reduced when a window is answered.
Which needs the least memory depends on the data: on rows per window and group, on the size of a
partial, on how many panes of a window a group is in. It is measured as windows are answered; the
form of what comes next follows, and what is held stays as it is. Answers do not depend on it.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from lowwater.errors import OptionError
from lowwater.stream.window import WindowSpec

Form = Literal["panes", "windows", "rows"]
FORMS: tuple[Form, ...] = get_args(Form)
BETTER = 1.5
"""Another form must need this much less memory before it is taken."""
SEEN_ROWS, SEEN_ANSWERS = 4_096, 256
"""So much is measured before the form is looked at again."""


def check_form(given: object) -> Form | None:
    """A form, or None to have it chosen."""
    if given is None or given in FORMS:
        return given
    raise OptionError(f"keep= is 'panes', 'windows' or 'rows', or None to choose, not {given!r}")


def first_form(window: WindowSpec) -> Form:
    """The form to begin with, by the window alone.

    A window of many more panes than windows a row is in would have more pane partials to put
    together than it has partials of its own.
    """
    return "windows" if window.panes > 4 * window.overlap else "panes"


class Keeping:
    """The form rows are kept in now; chosen from what is measured unless it was told."""

    def __init__(self, window: WindowSpec, told: Form | None):
        self._window, self._told = window, told
        self.form: Form = told or first_form(window)
        self._forget()

    def _forget(self) -> None:
        self._rows = self._row_bytes = 0
        self._answers = self._answer_bytes = self._parts = 0

    @property
    def measures(self) -> bool:
        """Whether anything is to be measured."""
        return self._told is None

    def came(self, rows: int, size: int) -> None:
        """Rows have come in, so large as they are kept."""
        self._rows += rows
        self._row_bytes += size

    def answered(self, parts: int, answers: int, size: int) -> None:
        """So many partials were put together to so many, so large in all."""
        self._parts += parts
        self._answers += answers
        self._answer_bytes += size
        if self._rows >= SEEN_ROWS and self._answers >= SEEN_ANSWERS:
            self._choose()
            self._forget()

    def _choose(self) -> None:
        """The smallest form, per window and group, if it is smaller by far."""
        overlap = self._window.overlap
        rows = self._rows * overlap / self._answers
        partial = self._answer_bytes / self._answers
        panes = min(rows, float(self._window.panes))
        if self.form == "panes":  # measured, then
            panes = min(panes, self._parts / self._answers)
        sizes: dict[Form, float] = {
            "panes": panes * partial / overlap,
            "windows": partial,
            "rows": rows * (self._row_bytes / self._rows) / overlap,
        }
        if self._window.tumbling:
            del sizes["windows"]  # a pane is a window
        best = min(sizes, key=lambda form: sizes[form])
        if sizes[best] * BETTER < sizes.get(self.form, partial):
            self.form = best

    def snapshot(self) -> Any:
        """The form and what was measured."""
        measured = (self._rows, self._row_bytes, self._parts, self._answers, self._answer_bytes)
        return self.form, measured

    def restore(self, saved: Any) -> None:
        """Go on from a snapshot."""
        self.form, measured = saved
        self._rows, self._row_bytes, self._parts, self._answers, self._answer_bytes = measured
