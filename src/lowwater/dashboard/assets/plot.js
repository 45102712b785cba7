// The common parts of charts: a title, a vertical axis from zero, labels at the right, and a tip
// with the values under the pointer.

import * as format from "./format.js";
import { draw, make } from "./dom.js";

/** The forms of values in full (`say`) and on an axis; `timely` if they are lengths of time. */
export const UNITS = {
  seconds: { say: format.seconds, tick: format.seconds, timely: true },
  rows: { say: format.number, tick: format.short },
  rate: { say: (value) => `${format.number(value)}/s`, tick: format.rate },
  bytes: { say: format.bytes, tick: format.bytes },
  share: { say: format.share, tick: format.share },
};

const TONES = 7;
const AXIS_WIDTH = 64;
const LABEL = { height: 14, letter: 6.2, swatch: 26, most: 140 };
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;
const ROUND_TIMES = [1, 2, 5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE,
  30 * MINUTE, HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR];

/** The classes that give the series of a place its colour, and its dashes when colours run out. */
export const toneOf = (place) => `tone${place % TONES} dash${Math.floor(place / TONES) % 3}`;

/** The least round step that cuts a span into at most `parts` parts. */
export function roundStep(span, parts, timely) {
  const rough = span / parts;
  if (timely && rough > 0.5) {
    return ROUND_TIMES.find((step) => step >= rough) ?? DAY * Math.ceil(rough / DAY);
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
    this.note = make("span", { class: "quiet" });
    this.element = make("figure", {},
      make("figcaption", {}, make("h3", { text: title }), this.note),
      make("div", { class: "canvas" }, this.svg, this.tip));
    new ResizeObserver(() => this.redraw()).observe(this.svg);
    this.svg.addEventListener("pointermove", (event) =>
      this.pointed(event.clientX - this.svg.getBoundingClientRect().left));
    this.svg.addEventListener("pointerleave", () => this.pointed(null));
  }

  /** Draws the chart anew, if there is room: `drawing(box)` is what is in it, `labels` are the
   * `{tone, name, value}` to write at its right. */
  paint(labels, drawing) {
    const { clientWidth: width, clientHeight: height } = this.svg;
    if (!width) return;
    const letters = Math.max(0, ...labels.map(({ name, value }) => name.length + value.length + 1));
    const room = Math.min(LABEL.most, width * 0.4, LABEL.swatch + letters * LABEL.letter);
    this.box = { left: AXIS_WIDTH, right: width - room, top: 8, bottom: height - 20 };
    const said = labels.map(({ name, value }) => `${name} ${value}`).join(", ") || "nothing";
    this.svg.setAttribute("aria-label", `${this.title}, at the end: ${said}`);
    this.cross = draw("g", { class: "cross" });
    this.svg.replaceChildren(...drawing(this.box), this.cross);
  }

  /** The vertical axis up to at least `most`, and where a value lies on it. */
  axis({ left, right, top, bottom }, most) {
    const step = roundStep(most || 1, 4, this.unit.timely);
    const highest = Math.max(step, Math.ceil(most / step - 1e-9) * step);
    const y = (value) => bottom - (value / highest) * (bottom - top);
    const marks = [];
    for (let value = 0; value <= highest * 1.0001; value += step) {
      const at = Math.round(y(value)) + 0.5;
      const text = this.unit.tick(value);
      marks.push(
        draw("line", { class: value ? "grid" : "base", x1: left, x2: right, y1: at, y2: at }),
        draw("text", { class: "tick end", x: left - 6, y: at + 4, text }));
    }
    return [marks, y];
  }

  /** Names and values at the right, each as near to its height `y` as the others let it. */
  labels({ right, top, bottom }, entries) {
    const sorted = entries.toSorted((a, b) => a.y - b.y);
    let free = top;
    for (const entry of sorted) free = (entry.at = Math.max(free, entry.y)) + LABEL.height;
    free = bottom;
    for (const entry of sorted.toReversed()) {
      free = (entry.at = Math.min(free, entry.at)) - LABEL.height;
    }
    const letters = (this.svg.clientWidth - right - LABEL.swatch) / LABEL.letter;
    return sorted.map(({ tone, name, value, at }) => {
      const cut = format.clipped(name, Math.max(3, Math.floor(letters - value.length)));
      return draw("g", { class: tone, transform: `translate(${right + 6} ${at})` },
        draw("title", { text: `${name} ${value}` }),
        draw("line", { class: "swatch", x2: 12 }),
        draw("text", { class: "label", x: 16, y: 4 },
          draw("tspan", { class: "value", text: value }), draw("tspan", { dx: 4, text: cut })));
    });
  }

  /** Draws a line at a place, and shows `{tone, name, value}` beside it. */
  hint(x, heading, lines) {
    const { top, bottom } = this.box;
    this.cross.replaceChildren(draw("line", { x1: x, x2: x, y1: top, y2: bottom }));
    this.tip.hidden = !lines.length;
    this.tip.replaceChildren(make("strong", { text: heading }), ...lines.map((line) =>
      make("div", { class: line.tone },
        make("i"), make("span", { text: line.name }), make("b", { text: line.value }))));
    const leftward = x > this.svg.clientWidth / 2;
    this.tip.style.left = leftward ? "" : `${x + 12}px`;
    this.tip.style.right = leftward ? `${this.svg.clientWidth - x + 12}px` : "";
  }

  unhint() {
    this.cross?.replaceChildren();
    this.tip.hidden = true;
  }
}
