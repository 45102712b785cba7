// A line chart over time. All line charts on the page share the moment under the pointer.

import { clock } from "./format.js";
import { draw } from "./dom.js";
import { Plot, roundStep, toneOf } from "./plot.js";

const MOST_LINES = 10;
const charts = new Set();
let pointer = { moment: null, chart: null };

/** The first index whose moment is not before `moment`. */
function indexOf(at, moment) {
  let [low, high] = [0, at.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at[middle] < moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

function nearest(at, moment) {
  const after = Math.min(indexOf(at, moment), at.length - 1);
  return after > 0 && moment - at[after - 1] < at[after] - moment ? after - 1 : after;
}

/** The places of the least and the greatest value between two indexes, in order. */
function extremes(values, from, to) {
  let [least, most] = [-1, -1];
  for (let i = from; i < to; i += 1) {
    if (values[i] === null) continue;
    if (least < 0 || values[i] < values[least]) least = i;
    if (most < 0 || values[i] > values[most]) most = i;
  }
  if (least < 0) return [];
  return least === most ? [least] : [Math.min(least, most), Math.max(least, most)];
}

const latest = (values) => values.findLast((value) => value !== null) ?? null;

export class LineChart extends Plot {
  #at = [];
  #lines = [];
  #range = [0, 1];

  constructor(title, unit) {
    super(title, unit);
    charts.add(this);
  }

  /** Series are `{name, values, tone}`; the tone, if not given, follows from the place. */
  update(at, series, range) {
    const lines = series.map((each, i) => ({ tone: toneOf(i), ...each, now: latest(each.values) }));
    const highest = lines.toSorted((a, b) => (b.now ?? -1) - (a.now ?? -1)).slice(0, MOST_LINES);
    this.#lines = lines.filter((line) => highest.includes(line));
    this.remark(lines.length > MOST_LINES ? `the highest ${MOST_LINES} of ${lines.length}` : "");
    [this.#at, this.#range] = [at, range];
    this.redraw();
  }

  redraw() {
    const said = this.#lines.map((line) => `${line.name} ${this.unit.say(line.now)}`).join(", ");
    this.paint(`now ${said || "nothing"}`, (box) => this.#drawing(box));
    this.#follow();
  }

  #drawing(box) {
    const [from, to] = this.#range;
    const start = indexOf(this.#at, from);
    let most = 0;
    for (const { values } of this.#lines) {
      for (let i = start; i < values.length; i += 1) if (values[i] > most) most = values[i];
    }
    const [marks, y] = this.axis(box, most);
    const x = (moment) => box.left + ((moment - from) / (to - from || 1)) * (box.right - box.left);
    this.scale = { x, y, box };
    this.cross = draw("g", { class: "cross" });
    const paths = this.#lines.map((line) =>
      draw("path", { class: `line ${line.tone}`, d: this.#path(line.values, start) }));
    const entries = this.#lines.filter((line) => line.now !== null).map((line) =>
      ({ ...line, value: this.unit.tick(line.now), y: y(line.now) }));
    return [...marks, ...this.#times(box), ...paths, ...this.labels(box, entries), this.cross];
  }

  #times(box) {
    const [from, to] = this.#range;
    const step = roundStep(to - from || 1, (box.right - box.left) / 80, true);
    const shift = new Date(to * 1000).getTimezoneOffset() * 60;
    const marks = [];
    for (let at = Math.ceil((from - shift) / step) * step + shift; at <= to; at += step) {
      const place = this.scale.x(at);
      if (place > box.right - 12) break;
      marks.push(draw("text", { class: "tick middle", x: place, y: box.bottom + 15, text: clock(at, step < 60) }));
    }
    return marks;
  }

  /** One path a line; where there are more points than pixels, the least and greatest of each. */
  #path(values, start) {
    const { x, y, box } = this.scale;
    const step = Math.max(1, Math.ceil((values.length - start) / (box.right - box.left)));
    let path = "";
    let down = false;
    for (let i = start - (step > 1 ? start % step : 0); i < values.length; i += step) {
      const kept = extremes(values, Math.max(i, start), Math.min(i + step, values.length));
      if (!kept.length) down = false;
      for (const k of kept) {
        path += `${down ? "L" : "M"}${x(this.#at[k]).toFixed(1)} ${y(values[k]).toFixed(1)}${down ? "" : "h0"}`;
        down = true;
      }
    }
    return path;
  }

  pointed(place) {
    const inside = place !== null && this.scale && this.#at.length && place >= this.scale.box.left - 4;
    const [from, to] = this.#range;
    const part = inside ? (place - this.scale.box.left) / (this.scale.box.right - this.scale.box.left) : 0;
    const moment = inside && part <= 1.02 ? from + part * (to - from) : null;
    pointer = { moment, chart: this };
    for (const chart of charts) chart.#follow();
  }

  #follow() {
    if (!this.cross) return;
    const { moment, chart } = pointer;
    if (moment === null || !this.#at.length) {
      this.cross.replaceChildren();
      this.hint(0, "", null);
      return;
    }
    const i = nearest(this.#at, moment);
    const { x, y, box } = this.scale;
    const place = x(this.#at[i]);
    const met = this.#lines.filter((line) => (line.values[i] ?? null) !== null);
    this.cross.replaceChildren(
      draw("line", { x1: place, x2: place, y1: box.top, y2: box.bottom }),
      ...met.map((line) => draw("circle", { class: line.tone, cx: place, cy: y(line.values[i]), r: 3 })));
    const told = met.toSorted((a, b) => b.values[i] - a.values[i]);
    this.hint(place, clock(this.#at[i]), chart === this
      ? told.map((line) => ({ ...line, value: this.unit.say(line.values[i]) })) : null);
  }
}
