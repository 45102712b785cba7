// The page: puts what was asked for into its places, and listens to its buttons.

import * as format from "./format.js";
import { byId, make, say, Table } from "./dom.js";
import { Channels } from "./channels.js";
import { Graph } from "./graph.js";
import { Poll } from "./poll.js";
import { lagCharts, sections, Wall } from "./sections.js";

const RANGES = [["5 min", 300], ["15 min", 900], ["1 hour", 3600]];
const LEVELS = { bad: "✕ problem", warn: "▲ watch", ok: "✓ fine" };
const SHOWN_WORDS = 4;
const RATE_SPAN = 10;

const graph = new Graph(byId("graph"), byId("node"));
const lag = new Wall();
const channels = new Channels();
const parts = sections();
let chosen = null;
let span = RANGES[0][1];

/** Replaces the children of an element where the key differs from last time. */
function renew(element, key, children) {
  const text = JSON.stringify(key);
  if (element.dataset.key === text) return;
  element.dataset.key = text;
  element.replaceChildren(...children());
}

function header(state, paused) {
  document.title = `${state.title} · lowwater`;
  say(byId("title"), state.title);
  byId("title").title = state.title;
  say(byId("outcome"), state.outcome);
  byId("outcome").className = `pill ${state.outcome}`;
  say(byId("about"), `${state.engine} engine · ${format.seconds(Math.round(state.elapsed))}`);
  say(byId("follow"), paused ? "Follow" : "Pause");
  byId("follow").hidden = !state.live;
}

function banners({ state, failures, lost, paused, seen }) {
  const lines = [];
  if (failures) {
    const until = seen === null ? "" : `; last seen ${format.clock(seen)}`;
    lines.push(["warn", `The run has ended or cannot be reached${until}.${lost ? "" : " Trying again …"}`]);
  }
  if (state?.error) lines.push(["bad", `Failed: ${state.error}`]);
  if (state && !state.live) {
    const ended = `ended ${format.seconds(Math.max(0, Math.round(Date.now() / 1000 - state.at)))} ago`;
    lines.push(["quiet", state.saved ? `Saved metrics of ${state.saved}; the run ${ended}.` : `The run ${ended}.`]);
  }
  if (paused && state?.live) lines.push(["quiet", `Paused at ${format.clock(state.at)}; the run goes on.`]);
  renew(byId("banner"), [lines, lost], () => {
    const shown = lines.map(([level, text]) => make("p", { class: level, text }));
    if (lost) shown[0].append(button("Try again", () => poll.start()));
    return shown;
  });
}

function button(text, act) {
  const made = make("button", { type: "button", text });
  made.addEventListener("click", act);
  return made;
}

function picker(queries, query) {
  byId("queries").hidden = queries.length < 2;
  const key = queries.map((each) => [each.id, each.title, pressing(each), each.id === query.id]);
  renew(byId("queries"), key, () => queries.map((each) => {
    const made = button(each.title, () => {
      chosen = each.id;
      show(poll);
    });
    made.setAttribute("aria-pressed", `${each.id === query.id}`);
    made.prepend(make("span", { class: `level ${pressing(each)}`, text: LEVELS[pressing(each)] }));
    return made;
  }));
}

/** What is to know of a query, the most pressing first. */
function wordsOf(query) {
  const failed = query.error ? [{ level: "bad", text: query.error }] : [];
  const order = Object.keys(LEVELS);
  return [...failed, ...query.words].sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level));
}

const pressing = (query) => wordsOf(query)[0]?.level ?? "ok";

function words(query) {
  const found = wordsOf(query);
  const item = ({ level, text }) =>
    make("li", {}, make("span", { class: `level ${level}`, text: LEVELS[level] }), make("span", { text }));
  byId("words").hidden = !found.length;
  renew(byId("words").querySelector("ul"), found, () => {
    const first = found.slice(0, SHOWN_WORDS).map(item);
    const rest = found.slice(SHOWN_WORDS).map(item);
    if (!rest.length) return first;
    const more = make("details", {}, make("summary", { text: `${rest.length} more` }), make("ul", {}, ...rest));
    return [...first, make("li", {}, more)];
  });
}

function figures(state, query, history) {
  const speed = (name) => (state.live
    ? `${format.number(history.rates(query.id, name, RATE_SPAN).at(-1))} a second`
    : `${format.number(query[name] / (state.elapsed || 1))} a second on average`);
  const [behind] = query.streams.filter(({ lag: behindBy }) => behindBy !== null)
    .toSorted((a, b) => b.lag - a.lag);
  const { latency } = query;
  const tiles = [
    ["Furthest behind", format.seconds(behind?.lag), behind ? behind.name : ""],
    ["Rows in", format.number(query.rows_in), speed("rows_in")],
    ["Rows out", format.number(query.rows_out), speed("rows_out")],
    ["Late rows", format.number(query.late_rows), `${format.number(query.refused_rows)} refused in all`],
    ["State", format.bytes(query.state_bytes), `${format.number(query.state_rows)} rows`],
  ];
  if (latency) {
    const { p50, p99, longest } = latency;
    const rest = `p99 ${format.seconds(p99)}, longest ${format.seconds(longest)}`;
    tiles.push(["Latency, median", format.seconds(p50), rest]);
  }
  renew(byId("figures"), tiles, () => tiles.map(([name, value, more]) =>
    make("div", {}, make("dt", { text: name }), make("dd", { text: value }),
      make("dd", { class: "quiet", text: more }))));
}

const rowTables = [["answers", "Answers"], ["late", "Late rows"]];

function newestRows(query, rows) {
  const found = rows?.queries[query.id];
  byId("rows").hidden = !found;
  if (!found) return;
  for (const [kind, title] of rowTables) {
    const { columns, rows: cells } = found[kind];
    const host = byId(`rows-${kind}`);
    renew(host, columns, () => {
      host.table = new Table(title, columns.map((name) => [name, "text"]));
      return [host.table.element];
    });
    host.table.fill(cells);
  }
}

function show(now) {
  banners(now);
  const { state, history, rows } = now;
  if (!state) return;
  header(state, now.paused);
  const query = state.queries.find((each) => each.id === chosen) ?? state.queries[0];
  byId("query").hidden = !query;
  if (!query) return;
  const view = { history, range: history.range(span), mean: span / 30 };
  picker(state.queries, query);
  figures(state, query, history);
  words(query);
  graph.update(query.nodes);
  lag.update(lagCharts(query, view), view);
  channels.update(query.streams);
  for (const part of parts) part(query, view);
  newestRows(query, rows);
}

function ranges() {
  for (const [name, length] of RANGES) {
    const made = button(name, () => {
      span = length;
      for (const each of byId("ranges").children) each.setAttribute("aria-pressed", `${each === made}`);
      show(poll);
    });
    made.setAttribute("aria-pressed", `${length === span}`);
    byId("ranges").append(made);
  }
}

const poll = new Poll(show);
ranges();
byId("lag-chart").append(lag.element);
byId("follow").addEventListener("click", () => {
  if (poll.paused) poll.start();
  else poll.pause();
  show(poll);
});
setInterval(() => banners(poll), 10_000);
poll.start();
