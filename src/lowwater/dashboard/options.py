"""What may be said about a page."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from lowwater.errors import OptionError

LOOPBACK = "127.0.0.1"
LAST = 50
"""How many answers, and late rows, are shown if rows are."""


@dataclass(frozen=True)
class Dashboard:
    """Where the page of a run is, and what it shows; made by ``lw.dashboard(...)``."""

    port: int | None = None
    host: str = LOOPBACK
    show_rows: bool = False
    save: Path | None = None

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
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
    """Options of the page that shows a run: ``query.run(dashboard=lw.dashboard(port=8080))``.

    ``port``: the first free one from 4848 on, if none is given. ``host``: the address it is reached
    at; this machine alone unless told otherwise, and there is no password. ``show_rows``: also show
    the last answers and late rows. ``save``: a folder for the metrics, from which
    ``lowwater dashboard`` shows the run when it has ended.
    """
    number = isinstance(port, int) and not isinstance(port, bool)
    if port is not None and not (number and 0 < port < 65_536):
        raise OptionError(f"port= is a number from 1 to 65535, not {port!r}")
    if not isinstance(host, str) or not host:
        raise OptionError(f"host= is an address such as {LOOPBACK!r}, not {host!r}")
    return Dashboard(port, host, bool(show_rows), None if save is None else Path(save))


def dashboard_of(given: bool | Dashboard) -> Dashboard | None:
    """The page that was asked for; None if none was."""
    if isinstance(given, Dashboard):
        return given
    if isinstance(given, bool):
        return Dashboard() if given else None
    raise OptionError(f"dashboard= is True, False or lw.dashboard(...), not {given!r}")
