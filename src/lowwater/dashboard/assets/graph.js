// The query as a graph: a card for every node, stronger edges along the path that holds the result
// back, and the details of the chosen node.

import * as format from "./format.js";
import { draw, make, say } from "./dom.js";
import { CARD, layout } from "./layout.js";

const LEAST_SCALE = 0.85;
const MANY_ROWS = 1e7;
const FACTS = {
  stream: ["lag", "mark", "rows"],
  operator: ["mark", "rows", "state"],
  result: ["rows"],
};

function stateOf({ metrics }) {
  const { operator_state_rows: rows, operator_state_bytes: bytes } = metrics;
  return rows || bytes ? `${format.number(rows)} rows, ${format.bytes(bytes)}` : "none";
}

/** The metrics of a node as `[words, value]`, with the declared words and unit of each. */
function measured({ metrics, inputs }, declared) {
  return Object.entries(metrics).map(([id, value]) => {
    const [name, ports] = id.replace("]", "").split("[");
    const { words, unit } = declared[name];
    const whose = ports?.split(",").map((port) => inputs[port]).join(" → ");
    return [whose ? `${words} of ${whose}` : words, format.inUnit(value, unit)];
  });
}

/** The text of a card. */
function inShort(node) {
  const many = Math.max(node.rows_in, node.rows_out) >= MANY_ROWS;
  const [into, out] = [node.rows_in, node.rows_out].map(many ? format.short : format.number);
  return {
    lag: node.kind === "stream" ? format.seconds(node.lag) : "",
    mark: format.text(node.mark),
    rows: node.kind === "result" ? into : `${into} → ${out}`,
    state: stateOf(node),
  };
}

/** The tag of a node on the path that holds the result back. */
function held(node) {
  if (node.waits) return "waits";
  return node.holds && node.kind === "stream" ? "holds back" : "";
}

/** All metrics of a node; those that are not measured are left out. */
function inFull(node, declared) {
  return [
    ["kind", node.kind],
    ["detail", format.text(node.detail)],
    ["mark", format.text(node.mark)],
    ...(node.kind === "stream" ? [["lag", format.seconds(node.lag)]] : []),
    ["on the path that holds back", node.holds ? "yes" : "no"],
    ...("busy" in node ? [["share of time busy", format.share(node.busy)]] : []),
    ...Object.entries(node.marks).map(([name, mark]) => [`promise ${name}`, format.text(mark)]),
    ...measured(node, declared),
  ];
}

class Card {
  constructor({ x, y, height, small }, kind, choose) {
    const line = (i) => 36 + 15 * i;
    const labels = small ? [] : FACTS[kind];
    this.facts = small ? ["lag", "mark"] : FACTS[kind];
    const spots = small
      ? [["lag end", CARD.width - 10, 16], ["mark", 10, 31]]
      : this.facts.map((fact, i) => [fact, 44, line(i)]);
    this.small = small;
    this.title = draw("title");
    this.name = draw("text", { class: "name", x: 10, y: small ? 16 : 19 });
    this.values = spots.map(([kind, left, at]) => draw("text", { class: kind, x: left, y: at }));
    this.busy = draw("rect", { class: "busy", x: 1, y: height - 4, height: 3, rx: 1 });
    const top = small ? -10 : -8;
    this.tag = draw("text", { class: "middle", x: CARD.width - 42, y: top + 11 });
    const tag = draw("g", { class: "tag" },
      draw("rect", { x: CARD.width - 76, y: top, width: 68, height: 15, rx: 7 }), this.tag);
    this.element = draw("g", { transform: `translate(${x} ${y})`, tabindex: "0", role: "button" },
      this.title, draw("rect", { class: "card", width: CARD.width, height, rx: 5 }), this.name,
      ...labels.map((fact, i) => draw("text", { class: "fact", x: 10, y: line(i), text: fact })),
      ...this.values, this.busy, tag);
    this.element.addEventListener("click", choose);
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose();
    });
  }

  update(node, chosen) {
    const facts = inShort(node);
    const tag = held(node);
    const all = FACTS[node.kind].map((fact) => `${fact} ${facts[fact]}`).join(", ");
    const sentence = `${node.kind} ${node.id} ${node.detail}: ${all}${tag && `; ${tag}`}`;
    const classes = ["node", node.kind, node.holds && "holds", tag && "tagged"];
    this.element.setAttribute("class", classes.filter(Boolean).join(" "));
    this.element.setAttribute("aria-pressed", `${chosen}`);
    this.element.setAttribute("aria-label", sentence);
    this.busy.setAttribute("width", Math.min(1, node.busy ?? 0) * (CARD.width - 2));
    say(this.title, sentence);
    say(this.tag, tag);
    say(this.name, format.clipped(node.name, this.small ? 22 - facts.lag.length : 24));
    this.values.forEach((value, i) => say(value, facts[this.facts[i]]));
  }
}

export class Graph {
  #shape = "";
  #cards = new Map();
  #edges = [];
  #chosen = null;
  #nodes = [];
  #declared = {};

  /** Calls `chose` with the id of a node that was chosen. */
  constructor(box, panel, chose) {
    this.box = box;
    this.chose = chose;
    this.panel = panel;
    panel.querySelector("button").addEventListener("click", () => this.#choose(null));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#choose(null);
    });
    new ResizeObserver(() => this.#fit()).observe(box);
  }

  update(nodes, declared) {
    this.#nodes = nodes;
    this.#declared = declared;
    const shape = JSON.stringify(nodes.map((node) => [node.id, node.kind, node.inputs]));
    if (shape !== this.#shape) this.#build();
    this.#shape = shape;
    this.#redraw();
  }

  #build() {
    const { places, edges, width, height } = layout(this.#nodes);
    const toggle = (id) => () => this.#choose(id === this.#chosen ? null : id);
    this.size = { width, height };
    const kinds = new Map(this.#nodes.map((node) => [node.id, node.kind]));
    this.#cards = new Map([...places].map(([id, place]) =>
      [id, new Card(place, kinds.get(id), toggle(id))]));
    this.#edges = edges.map(({ from, to, path }) =>
      ({ from, element: draw("path", { d: path }, draw("title", { text: `${from} → ${to}` })) }));
    const viewBox = `0 0 ${width} ${height}`;
    this.svg = draw("svg", { viewBox, role: "group", "aria-label": "The query as a graph" },
      ...this.#edges.map((edge) => edge.element),
      ...[...this.#cards.values()].map((card) => card.element));
    this.box.replaceChildren(this.svg);
    this.#fit();
    const held = places.get(this.#nodes.find((node) => node.holds)?.id);
    if (held) this.box.scrollTop = held.y - this.box.clientHeight / 2;
  }

  /** Shrinks a little to avoid scrolling; what is larger scrolls inside its box. */
  #fit() {
    if (!this.svg) return;
    const scale = Math.min(1, Math.max(LEAST_SCALE, this.box.clientWidth / this.size.width));
    this.svg.setAttribute("width", this.size.width * scale);
    this.svg.setAttribute("height", this.size.height * scale);
  }

  #choose(id) {
    this.#chosen = id;
    this.#redraw();
    if (id !== null) this.chose(id);
  }

  #redraw() {
    const holding = new Set(this.#nodes.filter((node) => node.holds).map((node) => node.id));
    for (const node of this.#nodes) this.#cards.get(node.id).update(node, node.id === this.#chosen);
    for (const { from, element } of this.#edges) {
      element.setAttribute("class", holding.has(from) ? "edge holds" : "edge");
    }
    const node = this.#nodes.find(({ id }) => id === this.#chosen);
    this.panel.hidden = !node;
    if (!node) return;
    say(this.panel.querySelector("h3"), node.id);
    this.panel.querySelector("dl").replaceChildren(...inFull(node, this.#declared).flatMap(([name, value]) =>
      [make("dt", { text: name }), make("dd", { text: value })]));
  }
}
