// Bars side by side, each of parts one upon the other; the newest is at the right.

import { draw } from "./dom.js";
import { Plot, toneOf } from "./plot.js";

const LEAST_SLOTS = 20;

export class BarChart extends Plot {
  #bars = [];
  #parts = [];
  #place = null;

  /** Bars are `{name, parts: {part: value}}`; `parts` are the names of parts, lowest first. */
  update(bars, parts) {
    [this.#bars, this.#parts] = [bars, parts];
    this.redraw();
  }

  redraw() {
    const newest = this.#bars.at(-1);
    const said = newest ? this.#lines(newest).map((line) => `${line.name} ${line.value}`).join(", ") : "nothing";
    this.paint(`${newest?.name ?? ""} ${said}`, (box) => this.#drawing(box));
    this.pointed(this.#place);
  }

  #lines(bar) {
    return this.#parts.map((part, i) =>
      ({ tone: toneOf(i), name: part, value: this.unit.say(bar.parts[part] ?? null) })).toReversed();
  }

  #drawing(box) {
    const totals = this.#bars.map((bar) => this.#parts.reduce((sum, part) => sum + (bar.parts[part] ?? 0), 0));
    const [marks, y] = this.axis(box, Math.max(0, ...totals));
    const slot = (box.right - box.left) / Math.max(this.#bars.length, LEAST_SLOTS);
    this.slots = { first: box.right - slot * this.#bars.length, slot };
    const floors = this.#bars.map(() => 0);
    const paths = this.#parts.map((part, p) => {
      const path = this.#bars.map((bar, i) => {
        const [low, high] = [floors[i], (floors[i] += bar.parts[part] ?? 0)];
        const left = this.slots.first + slot * i + slot * 0.1;
        return `M${left.toFixed(1)} ${y(low).toFixed(1)}V${y(high).toFixed(1)}h${(slot * 0.8).toFixed(1)}V${y(low).toFixed(1)}z`;
      });
      return draw("path", { class: `area ${toneOf(p)}`, d: path.join("") });
    });
    const newest = this.#bars.at(-1);
    const entries = newest ? this.#lines(newest).map((line, i) => ({ ...line, y: box.top + 14 * i })) : [];
    this.cross = draw("g", { class: "cross" });
    this.box = box;
    return [...marks, ...paths, ...this.labels(box, entries), this.cross];
  }

  pointed(place) {
    this.#place = place;
    if (!this.slots) return;
    const { first, slot } = this.slots;
    const bar = place === null ? undefined : this.#bars[Math.floor((place - first) / slot)];
    this.cross.replaceChildren();
    if (!bar || place < first) {
      this.hint(0, "", null);
      return;
    }
    const x = first + slot * (this.#bars.indexOf(bar) + 0.5);
    this.cross.append(draw("line", { x1: x, x2: x, y1: this.box.top, y2: this.box.bottom }));
    this.hint(x, bar.name, this.#lines(bar));
  }
}
