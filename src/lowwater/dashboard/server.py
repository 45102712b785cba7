"""The server shows a page of runs or of saved metrics; it is read-only, and by default only this
machine can reach it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from lowwater.dashboard.history import History
from lowwater.dashboard.observation import WatchedQuery
from lowwater.dashboard.options import Dashboard
from lowwater.dashboard.pull import latest_json, table_json
from lowwater.dashboard.state import distinct
from lowwater.errors import LowwaterError, OptionError
from lowwater.metrics.streams import CHANNEL_LAG
from lowwater.operators.metric import parts_of_id

ASSETS = Path(__file__).parent / "assets"
FIRST_PORT, PORTS = 4848, 50
"""The first port tried, and the number of ports tried, if none is given."""
TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
GUARDS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Headers of every answer: browsers load nothing from other servers, show the page in no frame, and
guess no types."""


Read = Callable[[], dict[str, Any]]
"""Returns the last state, or the last rows."""


class Server:
    """A running server; a thread of its own answers requests."""

    def __init__(
        self,
        latest: Read,
        points: History,
        options: Dashboard,
        rows: Read | None = None,
        queries: Sequence[WatchedQuery] = (),
    ):
        self._socket = _bound(options)
        config = uvicorn.Config(
            application(latest, points, options, rows, queries),
            log_level="critical",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run,
            kwargs={"sockets": [self._socket]},
            name="lowwater-server",
            daemon=True,
        )
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.005)
        port = self._socket.getsockname()[1]
        self.url = f"http://{f'[{options.host}]' if ':' in options.host else options.host}:{port}/"

    def close(self) -> None:
        """Stop the server and wait until its thread has ended."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


def _bound(options: Dashboard) -> socket.socket:
    """Return a socket bound to the port of the options; without one, to the first free port."""
    ports = [options.port] if options.port else range(FIRST_PORT, FIRST_PORT + PORTS)
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    trouble: OSError | None = None
    for port in ports:
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((options.host, port))
            found.listen()  # bind alone does not keep others from the port
        except OSError as error:
            found.close()
            trouble = error
        else:
            return found
    where = options.port or f"{FIRST_PORT} to {FIRST_PORT + PORTS - 1}"
    why = trouble.strerror if trouble else ""
    raise OptionError(f"the page cannot be served at {options.host}, port {where}: {why}")


def application(
    latest: Read,
    points: History,
    options: Dashboard,
    rows: Read | None = None,
    queries: Sequence[WatchedQuery] = (),
) -> Starlette:
    """Return the application: the page, its data and the metrics. All endpoints are read-only.

    ``latest`` returns the last state, ``points`` is the history. Values of rows are served only if
    there is ``rows``, which returns the last ones; ``queries`` are then asked for their answers.
    """

    async def page(request: Request) -> Response:
        del request
        return Response((ASSETS / "index.html").read_bytes(), media_type="text/html")

    async def state(request: Request) -> Response:
        del request
        return JSONResponse(latest())

    async def history(request: Request) -> Response:
        given = request.query_params.get("since")
        try:
            since = None if given is None else float(given)
        except ValueError:
            return PlainTextResponse("since= is a time in seconds since 1970", status_code=400)
        return JSONResponse(points.since(since))

    def last(request: Request) -> Response:  # not async, because it reads files
        del request
        return JSONResponse(rows()) if rows is not None else _private()

    def pull(read: Callable[[], Any]) -> Response:
        if rows is None:
            return _private()
        try:
            return JSONResponse(read())
        except LowwaterError as error:
            return PlainTextResponse(str(error), status_code=400)

    def latest_answer(request: Request) -> Response:  # not async, because it waits for the run
        given = request.query_params
        return pull(lambda: latest_json(queries, given.get("query"), given.getlist("key")))

    def answer_table(request: Request) -> Response:
        given = request.query_params
        return pull(lambda: table_json(queries, given.get("query"), given.get("limit")))

    async def metrics(request: Request) -> Response:
        del request
        return Response(exposition(latest()), headers={"Content-Type": TEXT_FORMAT})

    names = ["localhost", "127.0.0.1", "::1", "[::1]", options.host] if options.local else ["*"]
    return Starlette(
        routes=[
            Route("/", page, methods=["GET"]),
            Route("/api/state", state, methods=["GET"]),
            Route("/api/history", history, methods=["GET"]),
            Route("/api/rows", last, methods=["GET"]),
            Route("/api/latest", latest_answer, methods=["GET"]),
            Route("/api/table", answer_table, methods=["GET"]),
            Route("/metrics", metrics, methods=["GET"]),
            Mount("/assets", StaticFiles(directory=ASSETS)),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=names),
            Middleware(GZipMiddleware, minimum_size=2_000),
            Middleware(_Guarded),
        ],
    )


def _private() -> Response:
    return PlainTextResponse("rows are shown with --show-rows only", status_code=404)


class _Guarded:
    """Adds the headers :data:`GUARDS` to every answer."""

    def __init__(self, app: Any):
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                extra = [(k.lower().encode(), v.encode()) for k, v in GUARDS.items()]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        await self._app(scope, receive, guarded)


# ---- Prometheus --------------------------------------------------------------------------------

MOST_CHANNELS = 100
"""The number of channels of a stream, those furthest behind, whose lag is a series."""

Labels = dict[str, str]


def exposition(state: dict[str, Any]) -> bytes:
    """Return all metrics of a state in Prometheus's text format."""
    registry = CollectorRegistry()
    registry.register(_State(state))
    return generate_latest(registry)


class _State(Collector):
    """The metrics of one state, as Prometheus collects them."""

    def __init__(self, state: dict[str, Any]):
        self._queries = state["queries"]
        self._declared = state["declared"]

    def collect(self) -> Iterator[Metric]:
        """Return a family for each metric in the state, except for those whose unit is "text"."""
        found: dict[str, list[tuple[Labels, float | str]]] = {}
        for labels, id_, value in self._values():
            found.setdefault(id_, []).append((labels, value))
        for name, values in found.items():
            if self._declared[name]["unit"] != "text":
                yield self._family(name, self._declared[name], values)
        if lags := list(self._channel_lags()):
            about = {"unit": CHANNEL_LAG.unit, "total": False, "help": CHANNEL_LAG.help}
            yield self._family(CHANNEL_LAG.name, about, lags)

    def _values(self) -> Iterator[tuple[Labels, str, float | str]]:
        for query in self._queries:
            own = {"query": query["id"]}
            places: list[tuple[Labels, Any, Sequence[str]]] = [(own, query, ())]
            places += [(own | {"stream": each["name"]}, each, ()) for each in query["streams"]]
            for node in query["nodes"]:
                places.append((own | {"operator": node["id"]}, node, distinct(node["inputs"])))
            for labels, place, inputs in places:
                finite = ((i, v) for i, v in place["metrics"].items() if v is not None)
                for id_, value in finite:
                    name, ports = parts_of_id(id_)
                    read = zip(("input", "other"), (inputs[port] for port in ports), strict=False)
                    yield labels | dict(read), name, value

    def _channel_lags(self) -> Iterator[tuple[Labels, float]]:
        for query in self._queries:
            for stream in query["streams"]:
                for each in stream["channels"][:MOST_CHANNELS]:
                    if each["lag"] is not None:
                        place = {"stream": stream["name"], "channel": each["name"]}
                        yield {"query": query["id"]} | place, each["lag"]

    def _family(
        self, name: str, about: dict[str, Any], values: Sequence[tuple[Labels, float | str]]
    ) -> Metric:
        labels = list(values[0][0])
        text = about["unit"] == "state"
        full = f"lowwater_{name}{'_info' if text else ''}"
        kind = CounterMetricFamily if about["total"] else GaugeMetricFamily
        family = kind(full, about["help"], labels=[*labels, *(["value"] if text else [])])
        for own, value in values:
            shown = [own[label] for label in labels]
            family.add_metric(
                [*shown, str(value)] if text else shown, 1.0 if text else float(value)
            )
        return family
