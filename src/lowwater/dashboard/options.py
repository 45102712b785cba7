"""These are the options of the page of a run."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from lowwater.errors import OptionError

LOOPBACK = "127.0.0.1"
LAST = 50
"""Number of results, and of late rows, that are shown with ``show_rows``."""


@dataclass(frozen=True)
class Dashboard:
    """The address of the page of a run and its options; made by ``lw.dashboard(...)``."""

    port: int | None = None
    host: str = LOOPBACK
    show_rows: bool = False
    save: Path | None = None

    @property
    def local(self) -> bool:
        """True if only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


def dashboard(
    *,
    port: int | None = None,
    host: str = LOOPBACK,
    show_rows: bool = False,
    save: str | Path | None = None,
) -> Dashboard:
    """Return the options of the page that shows a run. The page has no password.

    >>> s = lw.stream(pl.DataFrame({"ts": [1, 2]}), name="s", time="ts")
    >>> run = s.run(dashboard=lw.dashboard(show_rows=True))
    >>> run.dashboard.url.startswith("http://127.0.0.1:")
    True
    >>> run.dashboard.close()

    ``port``
        Number of the port, from 1 to 65535. Default: None, the first free one from 4848 on.
    ``host``
        Address of the page. Default: ``"127.0.0.1"``, which only this machine can reach.
    ``show_rows``
        True to show the last 50 results, and late rows of each stream, too. Default: False.
    ``save``
        Folder for the metrics, from which ``lowwater dashboard`` shows the run after it has ended.
        Default: None, they are not saved.
    """
    number = isinstance(port, int) and not isinstance(port, bool)
    if port is not None and not (number and 0 < port < 65_536):
        raise OptionError(f"port= is a number from 1 to 65535, not {port!r}")
    if not isinstance(host, str) or not host:
        raise OptionError(f"host= is an address such as {LOOPBACK!r}, not {host!r}")
    return Dashboard(port, host, bool(show_rows), None if save is None else Path(save))


def dashboard_of(given: bool | Dashboard) -> Dashboard | None:
    """Return the options of the page that a user requested; None for no page."""
    if isinstance(given, Dashboard):
        return given
    if isinstance(given, bool):
        return Dashboard() if given else None
    raise OptionError(f"dashboard= is True, False or lw.dashboard(...), not {given!r}")
