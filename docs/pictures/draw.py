"""Draws the pictures of the guide, each on a light card, so that they are readable on any page.

Run it after a change: ``python docs/pictures/draw.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
INK, GREY, PALE = "#24292f", "#6b7078", "#d9dce1"
BLUE, ORANGE, RED, GREEN = "#2563a8", "#b8560b", "#b3261e", "#2e7d46"
VIOLET = "#7a3e9d"
FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"

Point = tuple[float, float]


class Picture:
    """Shapes on a card."""

    def __init__(self, width: int, height: int, title: str):
        self._size, self._title = (width, height), title
        self._shapes: list[str] = []

    def line(self, points: Sequence[Point], color: str = INK, width: float = 2, dash: str = ""):
        """A line through points."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self._shapes.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width:g}"'
            f' stroke-linejoin="round"{dashes}/>'
        )

    def arrow(self, start: Point, end: Point, color: str = INK, width: float = 2):
        """A line that ends in a head; it goes along one of the axes, or to the right."""
        self.line([start, end], color, width)
        (x0, y0), (x, y) = start, end
        length = ((x - x0) ** 2 + (y - y0) ** 2) ** 0.5
        dx, dy = (x - x0) / length, (y - y0) / length
        left = (x - 9 * dx - 4.5 * dy, y - 9 * dy + 4.5 * dx)
        right = (x - 9 * dx + 4.5 * dy, y - 9 * dy - 4.5 * dx)
        self.shape([end, left, right], color)

    def shape(self, points: Sequence[Point], fill: str):
        """A filled shape."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self._shapes.append(f'<polygon points="{path}" fill="{fill}"/>')

    def box(self, x: float, y: float, w: float, h: float, fill: str, edge: str = "none"):
        """A box with round corners."""
        self._shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="5" fill="{fill}"'
            f' stroke="{edge}" stroke-width="1.5"/>'
        )

    def dot(self, x: float, y: float, color: str = BLUE):
        """A row."""
        self._shapes.append(f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="{color}"/>')

    def cross(self, x: float, y: float):
        """A late row."""
        for slope in (1, -1):
            self.line([(x - 5, y - 5 * slope), (x + 5, y + 5 * slope)], RED, 2.5)

    def diamond(self, x: float, y: float):
        """A timestamp that was made."""
        self.shape([(x, y - 7), (x + 7, y), (x, y + 7), (x - 7, y)], ORANGE)

    def text(self, x: float, y: float, words: str, color: str = INK, at: str = "start", size=14):
        """Words; a leading ``*`` makes them bold."""
        weight = ' font-weight="600"' if words.startswith("*") else ""
        self._shapes.append(
            f'<text x="{x:g}" y="{y:g}" fill="{color}" text-anchor="{at}"'
            f' font-size="{size}"{weight}>{escape(words.lstrip("*"))}</text>'
        )

    def svg(self) -> str:
        """The picture as a file."""
        width, height = self._size
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
                f' width="{width}" height="{height}" role="img" font-family="{FONT}">',
                f"<title>{escape(self._title)}</title>",
                f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"'
                f' fill="#fcfcfa" stroke="{PALE}"/>',
                *self._shapes,
                "</svg>\n",
            ]
        )


def timeline() -> Picture:
    """Rows over the order of arrival, and the mark under them."""
    it = Picture(760, 380, "Rows, the mark, two windows and a late row")
    times = [3, 8, 6, 12, 10, 17, 14, 9, 22, 26]
    marks = [None, 3, 3, 7, 7, 12, 12, 12, 17, 21]
    late = 8

    def x(arrival: float) -> float:
        return 60 + 56 * arrival

    def y(time: float) -> float:
        return 325 - 10 * time

    for begin, fill in ((0, "#eef3f9"), (10, "#f6f2ea")):
        it.box(62, y(begin + 10) + 1, 570, 98, fill)
        it.text(72, y(begin) - 8, f"window {begin} to {begin + 10}", GREY, size=13)
    it.arrow((62, 325), (660, 325), GREY, 1.5)
    it.text(655, 346, "order of arrival", GREY, "end", 13)
    it.arrow((62, 325), (62, 30), GREY, 1.5)
    it.text(74, 36, "time in the row", GREY, size=13)
    for value in (0, 10, 20):
        it.text(52, y(value) + 5, str(value), GREY, "end", 13)
    steps: list[Point] = []
    for arrival, mark in enumerate(marks, 1):
        if mark is not None:
            before = steps[-1][1] if steps else y(mark)
            steps += [(x(arrival), before), (x(arrival), y(mark))]
    steps.append((x(10.6), y(21)))
    it.line(steps, ORANGE, 3)
    it.text(x(10.7), y(21) + 5, "*mark", ORANGE)
    for arrival, time in enumerate(times, 1):
        if arrival == late:
            it.cross(x(arrival), y(time))
        else:
            it.dot(x(arrival), y(time))
    it.text(x(8) + 12, y(9) + 16, "9 is below the mark: late", RED, size=13)
    for arrival, ends in ((6, 10), (10, 20)):
        it.line([(x(arrival), y(ends) - 8), (x(arrival), y(ends) + 8)], GREEN, 4)
    it.text(x(6) - 9, y(8.3), "answered here", GREEN, "end", 13)
    it.text(x(10) + 9, y(20) + 16, "answered here", GREEN, size=13)
    it.text(
        20,
        368,
        "Rows are at most 5 seconds behind the newest before them: the mark is that one less 5.",
        GREY,
        size=13,
    )
    return it


def channels() -> Picture:
    """One watermark for all, and a mark for each."""
    it = Picture(760, 330, "One watermark for all channels, or one mark for each")
    devices = (("a", 0, BLUE), ("b", 3, GREEN), ("c", 8, VIOLET))
    for side, title in ((0, "*One watermark: newest less 4"), (1, "*A mark for each channel")):
        left = 30 + 375 * side

        def x(arrival: float, left: int = left) -> float:
            return left + 20 + 21 * arrival

        def y(time: float) -> float:
            return 222 - 12 * time

        it.text(left, 36, title)
        it.arrow((left, 262), (left + 300, 262), GREY, 1.5)
        it.text(left + 300, 280, "arrival", GREY, "end", 13)
        it.arrow((left, 262), (left, 56), GREY, 1.5)
        newest = -9.0
        steps: list[Point] = []
        for arrival in range(1, 13):
            device, behind, color = devices[(arrival - 1) % 3]
            time = arrival + 3 - behind
            if side == 0 and time < newest - 4:
                it.cross(x(arrival), y(time))
            else:
                it.dot(x(arrival), y(time), color)
            if arrival > 9:
                it.text(x(arrival) + 10, y(time) + 5, device, color, size=13)
            newest = max(newest, time)
            steps += [(x(arrival), steps[-1][1])] if steps else []
            steps.append((x(arrival), y(newest - 4)))
        if side == 0:
            it.line([*steps, (x(12.9), steps[-1][1])], ORANGE, 2.5)
            it.text(x(13.1), steps[-1][1] + 5, "*mark", ORANGE, size=13)
            continue
        for first, (_, behind, color) in enumerate(devices, 1):
            ends = [(x(each), y(each + 3 - behind) + 10) for each in (first, first + 9)]
            it.line(
                ends, ORANGE if first == len(devices) else color, 2, "" if first == 3 else "5 4"
            )
        it.text(x(6.6), y(0) + 8, "*mark of the stream:", ORANGE, size=13)
        it.text(x(6.6), y(0) + 25, "the least, c's", ORANGE, size=13)
    it.text(30, 312, "c is 8 seconds behind: all its rows are lost", RED, size=13)
    it.text(405, 312, "each is in order by itself: no row is lost", GREEN, size=13)
    return it


def idle() -> Picture:
    """A silent input, and a timestamp on demand."""
    it = Picture(760, 330, "An idle input holds a window until a timestamp is made for it")

    def x(second: float) -> float:
        return 130 + 48 * second

    for top, title in ((20, "*Without a timestamp on demand"), (175, "*With one")):
        it.text(20, top + 18, title)
        for n, name in enumerate(("busy", "silent", "window 0 to 5")):
            it.text(20, top + 50 + 34 * n, name, GREY, size=13)
        on_demand = top > 100
        for n, last in enumerate((11.4, 5.3 if on_demand else 11.4)):
            it.line([(x(0), top + 45 + 34 * n), (x(last), top + 45 + 34 * n)], PALE, 1.5)
        for second in range(12):
            it.dot(x(second), top + 45)
        it.dot(x(0), top + 79)
        until = 5.6 if on_demand else 11
        it.box(x(0), top + 101, x(5) - x(0), 24, "#e8eef6", BLUE)
        it.text(x(2.5), top + 118, "rows come in", BLUE, "middle", 12)
        it.box(x(5), top + 101, x(until) - x(5), 24, "#f8e9dc", ORANGE)
        if on_demand:
            it.arrow((x(5.3), top + 100), (x(5.3), top + 90), ORANGE, 2)
            it.diamond(x(5.3), top + 79)
            it.text(x(5.6), top + 84, "promise: no row below 5 will come", ORANGE, size=13)
            it.text(x(5.8), top + 118, "answered", GREEN, size=13)
        else:
            it.dot(x(11), top + 79)
            it.text(x(8), top + 118, "waits for the silent link", ORANGE, "middle", 12)
            it.text(x(11) + 6, top + 118, "answered", GREEN, size=13)
    it.text(x(11.4), 320, "arrival", GREY, "end", 13)
    return it


def graph() -> Picture:
    """A query with the mark of every operator."""
    it = Picture(760, 300, "A query graph with the mark of every operator")
    nodes = {
        "Control": (30, 40, "12:01:10"),
        "Main1": (30, 120, "12:01:09"),
        "Main2": (30, 200, "12:00:41"),
        "union": (240, 120, "12:00:41"),
        "window 1 minute": (420, 120, "12:00:41"),
        "result": (620, 120, ""),
    }
    held = {"Main2", "union", "window 1 minute"}
    edges = (("Control", "union"), ("Main1", "union"), ("Main2", "union"))
    chain = (("union", "window 1 minute"), ("window 1 minute", "result"))

    def width(name: str) -> int:
        return 150 if name.startswith("window") else 120

    for start, end in (*edges, *chain):
        (x0, y0, _), (x1, y1, _) = nodes[start], nodes[end]
        slow = {start, end} <= held
        it.arrow(
            (x0 + width(start), y0 + 28),
            (x1 - 2, y1 + 28),
            ORANGE if slow else GREY,
            3 if slow else 1.8,
        )
    for name, (x, y, mark) in nodes.items():
        it.box(
            x,
            y,
            width(name),
            56,
            "#f8e9dc" if name in held else "#eef3f9",
            ORANGE if name in held else BLUE,
        )
        it.text(x + width(name) / 2, y + (24 if mark else 33), f"*{name}", INK, "middle")
        if mark:
            it.text(
                x + width(name) / 2,
                y + 43,
                f"mark {mark}",
                ORANGE if name in held else GREY,
                "middle",
                13,
            )
    it.text(495, 200, "holds 12:00 to 12:01,", GREY, "middle", 13)
    it.text(495, 218, "waits for 12:01:00", GREY, "middle", 13)
    it.text(
        30,
        284,
        "The union can promise no more than its slowest input. Main2 holds the answer back.",
        ORANGE,
        size=13,
    )
    return it


def oblivious() -> Picture:
    """The buffers of a join without a window."""
    it = Picture(760, 320, "Buffers of a join without a window")
    it.text(30, 36, "*Rows that are kept")

    def x(value: float) -> float:
        return 60 + 19 * value

    rows = (("S1", 85, range(1, 16), 9), ("S2", 185, range(1, 11), 14))
    for name, y, values, passed in rows:
        it.text(30, y + 5, f"*{name}")
        it.line([(x(0.5), y), (x(16.5), y)], PALE, 1.5)
        for value in values:
            it.dot(x(value), y, BLUE if value >= passed else PALE)
    it.line([(x(8.5), 66), (x(8.5), 104)], ORANGE, 3)
    it.text(x(8.5), 126, "mark of S2: 9", ORANGE, "middle", 13)
    it.line([(x(13.5), 166), (x(13.5), 204)], ORANGE, 3)
    it.text(x(13.5), 226, "mark of S1: 14", ORANGE, "middle", 13)
    it.arrow((60, 252), (x(16.5), 252), GREY, 1.5)
    it.text(x(16.5), 270, "value that is joined on", GREY, "end", 13)
    it.text(
        30,
        302,
        "A row goes when the other stream has passed it: S1 is ahead and keeps seven, S2 none.",
        GREY,
        size=13,
    )
    left, top, bottom = 440, 70, 240
    it.text(left, 36, "*Number of rows kept, over time")
    it.arrow((left, bottom + 12), (left + 290, bottom + 12), GREY, 1.5)
    it.text(left + 290, bottom + 30, "time", GREY, "end", 13)
    it.arrow((left, bottom + 12), (left, top - 14), GREY, 1.5)
    it.line([(left, top + 10), (left + 280, top + 10)], RED, 2, "6 4")
    it.text(left + 8, top + 2, "a fixed window with as many results", RED, size=13)
    heights = [30, 34, 28, 36, 30, 60, 110, 138, 130, 140, 96, 60, 40, 32, 36, 28, 34, 30]
    spots = [(left + 16.5 * n, bottom - each) for n, each in enumerate(heights)]
    it.shape([(left, bottom + 11), *spots, (spots[-1][0], bottom + 11)], "#dfe9f4")
    it.line(spots, BLUE, 2.5)
    it.text(left + 205, bottom - 60, "rows held", BLUE, size=13)
    it.text(left + 130, bottom - 18, "disorder", BLUE, "middle", 13)
    return it


def updates() -> Picture:
    """An append queue and an update queue, under the same load."""
    it = Picture(760, 310, "An append queue and an update queue under overload")
    rows = [
        ("IBM", 24),
        ("GM", 31),
        ("IBM", 25),
        ("SAP", 90),
        ("IBM", 27),
        ("GM", 32),
        ("IBM", 26),
        ("SAP", 92),
    ]
    colors = {"IBM": BLUE, "GM": GREEN, "SAP": VIOLET}

    def cell(x: float, y: float, name: str, price: int) -> None:
        it.box(x, y, 66, 40, "#ffffff", colors[name])
        it.text(x + 33, y + 17, f"*{name}", colors[name], "middle", 13)
        it.text(x + 33, y + 33, str(price), INK, "middle", 13)

    it.text(20, 34, "*Append queue: every row waits for its turn")
    for n, (name, price) in enumerate(rows):
        cell(20 + 73 * n, 50, name, price)
    it.arrow((608, 70), (638, 70), GREY)
    it.text(648, 66, "8 rows behind,", RED, size=13)
    it.text(648, 84, "and growing", RED, size=13)
    it.text(20, 144, "*Update queue: one cell for each key; a newer row replaces the one in it")
    for n, name in enumerate(("IBM", "GM", "SAP")):
        prices = [price for each, price in rows if each == name]
        cell(20 + 120 * n, 160, name, prices[-1])
        for step, price in enumerate(reversed(prices[:-1])):
            it.text(53 + 120 * n, 222 + 19 * step, str(price), GREY, "middle", 13)
            it.line(
                [(42 + 120 * n, 217.5 + 19 * step), (64 + 120 * n, 217.5 + 19 * step)], GREY, 1.5
            )
    it.arrow((366, 180), (404, 180), GREY)
    it.text(414, 176, "3 rows wait, however many come", GREEN, size=13)
    it.text(414, 194, "the newest rows there was time for are shown", GREEN, size=13)
    it.text(414, 240, "replaced before its turn: given up, and counted", GREY, size=13)
    it.line([(404, 236), (330, 236)], GREY, 1, "3 3")
    it.text(20, 296, "IBM came four times while one row was worked on.", GREY, size=13)
    return it


LINKS = {  # minutes at which rows of three links were sent, and a word on each
    "Main1": ([0.15 + 0.3 * n for n in range(16)], "on time"),
    "Main2": ([0.2, 0.5, 0.8, 1.1, 1.35, 1.6, 1.85, 2.1, 2.4, 2.7], "delay grows"),
    "Control": ([0.4, 1.3], "silent"),
}
IN_TIME = 3
"""Rows of Main2 that come before a watermark has passed them."""


def problem() -> Picture:
    """Three links under one watermark, and with a mark each."""
    it = Picture(820, 330, "One watermark for all links, and a mark for each link")
    it.line([(410, 16), (410, 314)], PALE, 1)
    for left, heading, answered, fill in (
        (0, "*One watermark for all links", 3, "#fbeae8"),
        (410, "*A mark for each link", 2, "#e4f2e9"),
    ):
        it.text(left + 18, 34, heading, size=16)
        it.box(_minute(left, 0), 62, 56 * answered, 172, fill)
        for minute in range(6):
            it.line([(_minute(left, minute), 62), (_minute(left, minute), 234)], PALE, 1)
            if minute < 5:
                it.text(_minute(left, minute), 250, f"12:0{minute}", GREY, "middle", 12)
        for n, (name, (rows, word)) in enumerate(LINKS.items()):
            y = 92 + 54 * n
            it.text(left + 18, y, f"*{name}")
            it.text(left + 18, y + 15, word, GREY, size=12)
            it.line([(_minute(left, 0), y), (_minute(left, 5), y)], PALE, 1)
            for at, row in enumerate(rows):
                lost = not left and name == "Main2" and at >= IN_TIME
                (it.cross if lost else it.dot)(_minute(left, row), y)
    _one_watermark(it)
    _marks(it)
    return it


def _minute(left: float, minute: float) -> float:
    return left + 108 + 56 * minute


def _one_watermark(it: Picture) -> None:
    it.line([(_minute(0, 3.65), 56), (_minute(0, 3.65), 234)], RED)
    it.text(_minute(0, 5), 52, "watermark: newest row − 1 min", RED, "end", 12)
    it.text(_minute(0, 2.85), 136, "*7 lost", RED, size=12)
    it.text(_minute(0, 1.5), 226, "*answered: 7 missing", RED, "middle", 12)
    for n, words in enumerate(
        (
            "A short guess loses rows of the slow link. A long one",
            "keeps every answer waiting. A watermark for each link",
            "waits for the silent one.",
        )
    ):
        it.text(18, 276 + 18 * n, words, size=13)


def _marks(it: Picture) -> None:
    for minute, y, words, at in (
        (4.75, 92, "*mark", "end"),
        (2.8, 146, "*mark", "start"),
        (4.1, 200, "*mark, on demand", "end"),
    ):
        x = _minute(410, minute)
        it.line([(x, y - 18), (x, y + 18)], GREEN, 3, "4 3" if "demand" in words else "")
        it.text(x + (6 if at == "start" else -6), y - 10, words, GREEN, at, 12)
    it.text(_minute(410, 1), 226, "*answered: all", GREEN, "middle", 12)
    for n, words in enumerate(
        (
            "Each link promises what it knows of its own order.",
            "The least promise counts: no row is lost, and no",
            "delay is guessed.",
        )
    ):
        it.text(428, 276 + 18 * n, words, size=13)


PICTURES: tuple[Callable[[], Picture], ...] = (
    timeline,
    channels,
    idle,
    graph,
    oblivious,
    updates,
    problem,
)


def main() -> None:
    """Write all of them."""
    for draw in PICTURES:
        (HERE / f"{draw.__name__}.svg").write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
