// What every chart has: a title, a vertical axis from zero, labels at the right, and a tip that
// says what is under the pointer.

import * as format from "./format.js";
import { draw, make, say } from "./dom.js";

/** How values are said in full and on an axis, and whether they are lengths of time. */
export const UNITS = {
  seconds: { say: format.seconds, tick: format.seconds, timely: true },
  rows: { say: format.number, tick: format.short },
  rate: { say: (value) => `${format.number(value)}/s`, tick: format.rate },
  bytes: { say: format.bytes, tick: format.bytes },
  share: { say: format.share, tick: format.share },
};

const TONES = 7;
const LABEL_HEIGHT = 14;
const LABEL_WIDTH = 128;
const AXIS_WIDTH = 56;
const ROUND_TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];

/** The classes that give the series of a place its colour, and its dashes when colours run out. */
export const toneOf = (place) => `tone${place % TONES} dash${Math.floor(place / TONES) % 3}`;

/** The least round step that cuts a span into at most so many parts. */
export function roundStep(span, parts, timely) {
  const rough = span / parts;
  if (timely && rough > 0.5) {
    const found = ROUND_TIMES.find((step) => step >= rough);
    return found ?? 86400 * Math.ceil(rough / 86400);
  }
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.9999);
}

export class Plot {
  constructor(title, unit) {
    this.title = title;
    this.unit = unit;
    this.svg = draw("svg", { role: "img" });
    this.tip = make("div", { class: "tip", hidden: "" });
    this.note = make("span", { class: "note" });
    this.element = make("figure", { class: "chart" },
      make("figcaption", {}, make("h3", { text: title }), this.note),
      make("div", { class: "canvas" }, this.svg, this.tip));
    new ResizeObserver(() => this.redraw()).observe(this.svg);
    this.svg.addEventListener("pointermove", (event) => {
      this.pointed(event.clientX - this.svg.getBoundingClientRect().left);
    });
    this.svg.addEventListener("pointerleave", () => this.pointed(null));
  }

  /** Draws the chart anew: what `drawing(box)` gives, if there is room for it. */
  paint(summary, drawing) {
    const { clientWidth: width, clientHeight: height } = this.svg;
    if (!width) return;
    const box = { left: AXIS_WIDTH, right: width - LABEL_WIDTH, top: 8, bottom: height - 20 };
    this.svg.setAttribute("aria-label", `${this.title}: ${summary}`);
    this.svg.replaceChildren(...drawing(box));
  }

  /** The vertical axis up to at least `most`, and where a value lies on it. */
  axis(box, most) {
    const step = roundStep(most || 1, 4, this.unit.timely);
    const top = Math.max(step, Math.ceil(most / step - 1e-9) * step);
    const y = (value) => box.bottom - (value / top) * (box.bottom - box.top);
    const marks = [];
    for (let value = 0; value <= top * 1.0001; value += step) {
      const [at, kind] = [Math.round(y(value)) + 0.5, value ? "grid" : "base"];
      marks.push(draw("line", { class: kind, x1: box.left, x2: box.right, y1: at, y2: at }));
      marks.push(draw("text", { class: "tick end", x: box.left - 6, y: at + 4, text: this.unit.tick(value) }));
    }
    return [marks, y];
  }

  /** Names and values at the right, each as near to its height as the others let it. */
  labels(box, entries) {
    const lowest = box.bottom + 4;
    const sorted = entries.toSorted((a, b) => a.y - b.y);
    let free = box.top + 4;
    for (const entry of sorted) free = (entry.at = Math.max(free, entry.y + 4)) + LABEL_HEIGHT;
    free = lowest;
    for (const entry of sorted.toReversed()) free = (entry.at = Math.min(free, entry.at)) - LABEL_HEIGHT;
    return sorted.map((entry) => {
      const [x, y] = [box.right + 8, entry.at];
      const room = Math.floor((LABEL_WIDTH - 26) / 6.1) - entry.value.length - 1;
      return draw("g", { class: entry.tone },
        draw("title", { text: `${entry.name} ${entry.value}` }),
        draw("line", { class: "swatch", x1: x, x2: x + 12, y1: y - 4, y2: y - 4 }),
        draw("text", { class: "label", x: x + 16, y },
          draw("tspan", { class: "value", text: entry.value }),
          draw("tspan", { dx: 4, text: format.clipped(entry.name, Math.max(4, room)) })));
    });
  }

  /** Shows lines `{tone, name, value}` beside a place; nothing hides the tip. */
  hint(x, heading, lines) {
    this.tip.hidden = !lines;
    if (!lines) return;
    this.tip.replaceChildren(make("strong", { text: heading }), ...lines.map((line) =>
      make("div", { class: line.tone }, make("i"), make("span", { text: line.name }), make("b", { text: line.value }))));
    const leftward = x > this.svg.clientWidth / 2;
    this.tip.style.left = leftward ? "" : `${x + 12}px`;
    this.tip.style.right = leftward ? `${this.svg.clientWidth - x + 12}px` : "";
  }

  remark(text) {
    say(this.note, text);
  }
}
