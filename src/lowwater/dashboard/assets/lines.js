// A line chart over time. All line charts on the page share the moment under the pointer.

import { clock } from "./format.js";
import { draw, say } from "./dom.js";
import { Plot, roundStep, toneOf } from "./plot.js";

const MOST_LINES = 10;
const TIME_WIDTH = { minutes: 44, seconds: 72 };
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

/** The indexes of the least and the greatest value between two indexes, in order. */
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

export class LineChart extends Plot {
  #at = [];
  #lines = [];
  #range = [0, 1];

  constructor(title, unit) {
    super(title, unit);
    charts.add(this);
  }

  /** Series are `{name, values, tone}`; the tone, if not given, follows from the place. */
  update(at, series, range, note = "") {
    const last = (values) => values.findLast((value) => value !== null) ?? null;
    const lines = series.map((one, i) => ({ tone: toneOf(i), ...one, last: last(one.values) }));
    const highest = lines.toSorted((a, b) => b.last - a.last).slice(0, MOST_LINES);
    this.#lines = lines.filter((line) => highest.includes(line));
    const left = lines.length > MOST_LINES ? `the highest ${MOST_LINES} of ${lines.length}` : note;
    say(this.note, left);
    [this.#at, this.#range] = [at, range];
    this.redraw();
  }

  redraw() {
    const labels = this.#lines.filter((line) => line.last !== null).map((line) =>
      ({ ...line, value: this.unit.tick(line.last) }));
    this.paint(labels, (box) => this.#drawing(box, labels));
    this.#follow();
  }

  #drawing(box, labels) {
    const [from, to] = this.#range;
    const start = indexOf(this.#at, from);
    let most = 0;
    for (const { values } of this.#lines) {
      for (let i = start; i < values.length; i += 1) if (values[i] > most) most = values[i];
    }
    const [marks, y] = this.axis(box, most);
    const perSecond = (box.right - box.left) / (to - from || 1);
    this.scale = { x: (moment) => box.left + (moment - from) * perSecond, y, perSecond };
    const paths = this.#lines.map(({ tone, values }) =>
      draw("path", { class: `line ${tone}`, d: this.#path(values, start) }));
    const placed = labels.map((label) => ({ ...label, y: y(label.last) }));
    return [...marks, ...this.#times(box), ...paths, ...this.labels(box, placed)];
  }

  #times(box) {
    const [from, to] = this.#range;
    const least = (width) => roundStep(width / this.scale.perSecond, 1, true);
    const coarse = least(TIME_WIDTH.minutes);
    const step = coarse < 60 ? least(TIME_WIDTH.seconds) : coarse;
    const shift = new Date(to * 1000).getTimezoneOffset() * 60;
    const marks = [];
    for (let at = Math.ceil((from - shift) / step) * step + shift; at <= to; at += step) {
      const place = { class: "tick middle", x: this.scale.x(at), y: box.bottom + 15 };
      marks.push(draw("text", { ...place, text: clock(at, step < 60) }));
    }
    return marks;
  }

  /** One path a line; where there are more points than pixels, the least and greatest of each. */
  #path(values, start) {
    const { x, y } = this.scale;
    const step = Math.ceil((values.length - start) / (this.box.right - this.box.left)) || 1;
    let path = "";
    let down = false;
    for (let i = start - (start % step); i < values.length; i += step) {
      const kept = extremes(values, Math.max(i, start), Math.min(i + step, values.length));
      if (!kept.length) down = false;
      for (const k of kept) {
        const point = `${x(this.#at[k]).toFixed(1)} ${y(values[k]).toFixed(1)}`;
        path += down ? `L${point}` : `M${point}h0`;
        down = true;
      }
    }
    return path;
  }

  pointed(place) {
    const part = this.scale && place !== null ? place - this.box.left : -Infinity;
    const inside = part > -4 && part < this.box.right - this.box.left + 4;
    const moment = inside ? this.#range[0] + part / this.scale.perSecond : null;
    pointer = { moment, chart: this };
    for (const chart of charts) chart.#follow();
  }

  /** Shows the moment under the pointer; what the values were, on the chart that is pointed at. */
  #follow() {
    if (pointer.moment === null || !this.scale || !this.#at.length) {
      this.unhint();
      return;
    }
    const i = nearest(this.#at, pointer.moment);
    const { x, y } = this.scale;
    const place = x(this.#at[i]);
    const met = this.#lines.filter((line) => (line.values[i] ?? null) !== null)
      .toSorted((a, b) => b.values[i] - a.values[i]);
    const lines = met.map((line) => ({ ...line, value: this.unit.say(line.values[i]) }));
    this.hint(place, clock(this.#at[i]), pointer.chart === this ? lines : []);
    this.cross.append(...met.map(({ tone, values }) =>
      draw("circle", { class: tone, cx: place, cy: y(values[i]), r: 3 })));
  }
}
