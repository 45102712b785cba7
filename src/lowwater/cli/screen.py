"""One terminal for two things: rows that are printed for good, and progress that is drawn over.

Rows come from the threads that run queries, progress from the one that watches them. Before rows
are printed the progress is taken away; it comes back when it is drawn next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.live import Live

from lowwater.cli.app import err, out


class _Rows(Console):
    """Says that nobody reads any more where others would end the process."""

    def on_broken_pipe(self) -> None:
        """Tell who prints."""
        raise BrokenPipeError


class _Progress(Console):
    """Says nothing more once nobody reads what it says; the run goes on."""

    def on_broken_pipe(self) -> None:
        """Fall silent."""
        self.quiet = True


class Screen:
    """Standard output for rows, standard error for progress."""

    def __init__(self) -> None:
        self.out, self.err = out(_Rows), err(_Progress)
        self.closed_by_reader = threading.Event()
        """Set when nobody reads the rows any more (``lowwater run ... | head``)."""
        self.last: object = None
        """Who printed last, so that others know to say that it is them now."""
        self._lock = threading.RLock()
        self._live: Live | None = None

    def print_rows(self, write: Callable[[Console], object]) -> None:
        """Print rows above the progress."""
        with self._lock:
            if self.closed_by_reader.is_set():
                return
            self._hide()
            try:
                write(self.out)
                self.out.file.flush()
            except BrokenPipeError:
                self.closed_by_reader.set()

    def draw(self, progress: RenderableType) -> None:
        """Show progress below the rows, in place of what was shown before."""
        with self._lock:
            if self._live is None:
                self._live = Live(
                    progress,
                    console=self.err,
                    auto_refresh=False,
                    transient=True,
                    redirect_stdout=False,
                    redirect_stderr=False,
                )
                self._live.start()
            self._live.update(progress, refresh=True)

    def say(self, text: str) -> None:
        """A line about the run."""
        with self._lock:
            self._hide()
            self.err.print(text, soft_wrap=True)

    def close(self) -> None:
        """Take the progress away."""
        with self._lock:
            self._hide()

    def _hide(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
