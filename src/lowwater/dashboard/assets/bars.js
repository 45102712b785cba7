// Bars side by side, each a stack of parts; the newest is at the right.

import { draw } from "./dom.js";
import { Plot, toneOf } from "./plot.js";

const LEAST_SLOTS = 20;
const NAME_WIDTH = 60;

export class BarChart extends Plot {
  #bars = [];
  #parts = [];
  #place = null;

  /** Bars are `{name, title, parts: {part: value}}`; `parts` names the parts, lowest first. */
  update(bars, parts) {
    [this.#bars, this.#parts] = [bars, parts];
    this.redraw();
  }

  redraw() {
    const newest = this.#bars.at(-1);
    const labels = newest ? this.#lines(newest) : [];
    this.paint(labels, (box) => this.#drawing(box, labels));
    this.pointed(this.#place);
  }

  #lines(bar) {
    const said = (part) => this.unit.say(bar.parts[part] ?? 0);
    const lines = this.#parts.map((name, i) => ({ tone: toneOf(i), name, value: said(name) }));
    return lines.toReversed();
  }

  #drawing(box, labels) {
    const total = (bar) => this.#parts.reduce((sum, part) => sum + (bar.parts[part] ?? 0), 0);
    const [marks, y] = this.axis(box, Math.max(0, ...this.#bars.map(total)));
    const slot = (box.right - box.left) / Math.max(this.#bars.length, LEAST_SLOTS);
    this.slots = { slot, first: box.right - slot * this.#bars.length };
    const floors = this.#bars.map(() => 0);
    const area = (part, place) => {
      const path = this.#bars.map((bar, i) => {
        const [low, high] = [y(floors[i]), y((floors[i] += bar.parts[part] ?? 0))];
        return `M${this.#middle(i) - slot * 0.4} ${low}V${high}h${slot * 0.8}V${low}z`;
      });
      return draw("path", { class: `area ${toneOf(place)}`, d: path.join("") });
    };
    const placed = labels.map((label, i) => ({ ...label, y: box.top + i }));
    return [...marks, ...this.#parts.map(area), ...this.#names(box), ...this.labels(box, placed)];
  }

  #middle(i) {
    return this.slots.first + this.slots.slot * (i + 0.5);
  }

  #names(box) {
    const step = Math.ceil(NAME_WIDTH / this.slots.slot);
    const newest = this.#bars.length - 1;
    return this.#bars.flatMap(({ name }, i) => ((newest - i) % step ? [] : [
      draw("text", { class: "tick middle", x: this.#middle(i), y: box.bottom + 15, text: name }),
    ]));
  }

  pointed(place) {
    this.#place = place;
    const { first, slot } = this.slots ?? {};
    const i = Math.floor(((place ?? NaN) - first) / slot);
    const bar = this.#bars[i];
    if (bar) this.hint(this.#middle(i), bar.title, this.#lines(bar));
    else this.unhint();
  }
}
