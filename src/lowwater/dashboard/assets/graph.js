// The query as a graph: a card for every node, the way that holds the result back drawn stronger,
// and the details of the node that was chosen.

import * as format from "./format.js";
import { draw, make, say } from "./dom.js";
import { CARD, layout } from "./layout.js";

const LEAST_SCALE = 0.85;

const state = (node) =>
  node.state_rows || node.state_bytes ? `${format.number(node.state_rows)} rows, ${format.bytes(node.state_bytes)}` : "none";

const lagOf = (node) => (node.lag === null ? "" : `${format.seconds(node.lag)} behind`);

function sentence(node) {
  const held = node.holds ? ", holds the result back" : "";
  return `${node.kind} ${node.name} ${node.detail}: mark ${format.text(node.mark)}, ${lagOf(node) || "no lag known"}, `
    + `${format.number(node.rows_in)} rows in, ${format.number(node.rows_out)} out, state ${state(node)}${held}`;
}

class Card {
  constructor(place, choose) {
    const line = (kind, y, x = 10) => draw("text", { class: kind, x, y });
    const fact = (y, name) => draw("text", { class: "fact", x: 10, y, text: name });
    this.title = draw("title");
    this.name = line("name", 19);
    this.lag = line("lag end", 19, CARD.width - 10);
    this.mark = line("figure", 37, 44);
    this.rows = line("figure", 53, 44);
    this.state = line("figure", 69, 44);
    this.busy = draw("rect", { class: "busy", x: 1, y: CARD.height - 5, height: 4, width: 0, rx: 2 });
    this.tag = draw("g", { class: "tag" },
      draw("rect", { x: CARD.width - 76, y: -8, width: 68, height: 15, rx: 7 }),
      draw("text", { class: "middle", x: CARD.width - 42, y: 3, text: "holds back" }));
    this.element = draw("g", { transform: `translate(${place.x} ${place.y})`, tabindex: "0", role: "button" },
      this.title, draw("rect", { class: "card", width: CARD.width, height: CARD.height, rx: 5 }),
      this.name, this.lag, fact(37, "mark"), this.mark, fact(53, "rows"), this.rows, fact(69, "state"), this.state,
      this.busy, this.tag);
    this.element.addEventListener("click", choose);
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose();
    });
  }

  update(node, chosen) {
    const lag = node.lag === null ? "" : format.seconds(node.lag);
    this.element.setAttribute("class", `node ${node.kind}${node.holds ? " holds" : ""}`);
    this.element.setAttribute("aria-pressed", `${chosen}`);
    this.element.setAttribute("aria-label", sentence(node));
    say(this.title, sentence(node));
    say(this.name, format.clipped(node.name, lag.length > 7 ? 14 : 18));
    say(this.lag, lag);
    say(this.mark, format.text(node.mark));
    say(this.rows, node.kind === "result" ? format.number(node.rows_in) : `${format.number(node.rows_in)} → ${format.number(node.rows_out)}`);
    say(this.state, state(node));
    this.busy.setAttribute("width", Math.min(1, node.busy ?? 0) * (CARD.width - 2));
  }
}

export class Graph {
  #shape = "";
  #cards = new Map();
  #edges = [];
  #chosen = null;
  #nodes = [];

  constructor(box, panel) {
    this.box = box;
    this.panel = panel;
    panel.querySelector("button").addEventListener("click", () => this.#choose(null));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#choose(null);
    });
    new ResizeObserver(() => this.#fit()).observe(box);
  }

  update(nodes) {
    this.#nodes = nodes;
    const shape = JSON.stringify(nodes.map((node) => [node.id, node.kind, node.inputs]));
    if (shape !== this.#shape) this.#build(nodes);
    this.#shape = shape;
    this.#tell();
  }

  #build(nodes) {
    const { places, edges, width, height } = layout(nodes);
    this.size = { width, height };
    this.#cards = new Map(nodes.map(({ id }) =>
      [id, new Card(places.get(id), () => this.#choose(id === this.#chosen ? null : id))]));
    this.#edges = edges.map(({ from, to, path }) =>
      ({ from, element: draw("path", { d: path }, draw("title", { text: `${from} → ${to}` })) }));
    this.svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "The query as a graph" },
      ...this.#edges.map((edge) => edge.element), ...[...this.#cards.values()].map((card) => card.element));
    this.box.replaceChildren(this.svg);
    this.#fit();
  }

  /** Shrinks a little to avoid scrolling; what is larger scrolls inside its box. */
  #fit() {
    if (!this.svg) return;
    const scale = Math.min(1, Math.max(LEAST_SCALE, this.box.clientWidth / this.size.width));
    this.svg.setAttribute("width", this.size.width * scale);
    this.svg.setAttribute("height", this.size.height * scale);
  }

  #tell() {
    const holding = new Set(this.#nodes.filter((node) => node.holds).map((node) => node.id));
    for (const node of this.#nodes) this.#cards.get(node.id).update(node, node.id === this.#chosen);
    for (const { from, element } of this.#edges) element.setAttribute("class", holding.has(from) ? "edge holds" : "edge");
    const node = this.#nodes.find(({ id }) => id === this.#chosen);
    this.panel.hidden = !node;
    if (node) this.#detail(node);
  }

  #choose(id) {
    this.#chosen = id;
    this.#tell();
  }

  #detail(node) {
    const facts = [
      ["kind", node.kind], ["detail", format.text(node.detail)], ["mark", format.text(node.mark)],
      ["lag", format.seconds(node.lag)], ["holds the result back", node.holds ? "yes" : "no"],
      ["rows in", format.number(node.rows_in)], ["rows out", format.number(node.rows_out)],
      ["state", state(node)], ["queue", format.number(node.queue)],
      ["busy", format.share(node.busy)], ["idle, waiting", format.share(node.idle)],
      ...Object.entries(node.marks).map(([name, mark]) => [`promise ${name}`, format.text(mark)]),
      ...Object.entries(node.about).map(([name, value]) => [name, typeof value === "number" ? format.number(value) : format.text(value)]),
    ];
    say(this.panel.querySelector("h3"), node.id);
    this.panel.querySelector("dl").replaceChildren(
      ...facts.flatMap(([name, value]) => [make("dt", { text: name }), make("dd", { text: value })]));
  }
}
