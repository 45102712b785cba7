// The page: shows the state and history that `Poll` brings, and handles its buttons.

import * as format from "./format.js";
import { byId, make, renew, say, Table } from "./dom.js";
import { Channels } from "./channels.js";
import { Graph } from "./graph.js";
import { Poll } from "./poll.js";
import { sections } from "./sections.js";

const RANGES = [["5 min", 300], ["15 min", 900], ["1 hour", 3600]];
const LEVELS = { bad: "✕ problem", warn: "▲ watch", ok: "✓ fine" };
const SHOWN_WORDS = 4;
const RATE_SPAN = 10;

const channels = new Channels();
const graph = new Graph(byId("graph"), byId("node"), (id) => channels.choose(id));
const parts = sections();
let chosen = null;
let span = RANGES[0][1];

function button(text, act) {
  const made = make("button", { type: "button", text });
  made.addEventListener("click", act);
  return made;
}

const mark = (level) => make("span", { class: `level ${level}`, text: LEVELS[level] });

function header({ state, paused, failures }) {
  document.title = `${state.title} · lowwater`;
  say(byId("title"), state.title);
  byId("title").title = state.title;
  const outcome = failures ? "unknown" : state.outcome;
  say(byId("outcome"), outcome);
  byId("outcome").className = `pill ${outcome}`;
  say(byId("about"), `${state.engine} engine · ${format.seconds(Math.round(state.elapsed))}`);
  say(byId("follow"), paused ? "Follow" : "Pause");
  byId("follow").hidden = !state.live;
}

/** The messages about the page itself: `[level, text]`. */
function remarks({ state, failures, lost, paused, seen }) {
  const found = [];
  if (failures) {
    const until = seen === null ? "" : `; last seen ${format.clock(seen)}`;
    const more = lost ? "" : " Trying again …";
    found.push(["warn", `The run has ended or cannot be reached${until}.${more}`]);
  }
  if (!state) return found;
  if (!state.queries.length) found.push(["quiet", "No query has begun yet."]);
  if (state.error) found.push(["bad", `Failed: ${state.error}`]);
  if (!state.live) {
    const passed = Math.max(0, Math.round(Date.now() / 1000 - state.at));
    const whose = state.saved ? `Saved metrics of ${state.saved}; the run` : "The run";
    found.push(["quiet", `${whose} ended ${format.seconds(passed)} ago.`]);
  } else if (paused) {
    found.push(["quiet", `Paused at ${format.clock(state.at)}; the run goes on.`]);
  }
  return found;
}

function banner(now) {
  const found = remarks(now);
  renew(byId("banner"), [found, now.lost], () => {
    const lines = found.map(([level, text]) => make("p", { class: level, text }));
    if (now.lost) lines[0].append(" ", button("Try again", () => now.start()));
    return lines;
  });
}

/** The findings about a query, the most urgent first. */
function wordsOf(query) {
  const failed = query.error ? [{ level: "bad", text: query.error }] : [];
  const order = Object.keys(LEVELS);
  const rank = ({ level }) => order.indexOf(level);
  return [...failed, ...query.words].sort((a, b) => rank(a) - rank(b));
}

function picker(queries, query) {
  const pressing = (each) => wordsOf(each)[0]?.level ?? "ok";
  const key = queries.map((each) => [each.id, each.title, pressing(each), each === query]);
  byId("queries").hidden = queries.length < 2;
  renew(byId("queries"), key, () => queries.map((each) => {
    const made = button(each.title, () => {
      chosen = each.id;
      show(poll);
    });
    made.setAttribute("aria-pressed", `${each === query}`);
    made.prepend(mark(pressing(each)), " ");
    return made;
  }));
}

function words(query) {
  const found = wordsOf(query);
  byId("words").hidden = !found.length;
  renew(byId("words").querySelector("ul"), found, () => {
    const items = found.map(({ level, text }) =>
      make("li", {}, mark(level), make("span", { text })));
    const rest = items.splice(SHOWN_WORDS);
    if (!rest.length) return items;
    const title = make("summary", { text: `${rest.length} more` });
    return [...items, make("li", {}, make("details", {}, title, make("ul", {}, ...rest)))];
  });
}

function figures(state, query, history) {
  const { number, seconds } = format;
  const speed = (name) => (state.live
    ? `${number(history.rates(query.id, name, RATE_SPAN).at(-1))} a second`
    : `${number(query[name] / (state.elapsed || 1))} a second on average`);
  const [last] = query.streams.filter((stream) => stream.lag !== null)
    .toSorted((a, b) => b.lag - a.lag);
  const found = [
    ["Furthest behind", seconds(last?.lag), last?.name ?? ""],
    ["Rows in", number(query.rows_in), speed("rows_in")],
    ["Rows out", number(query.rows_out), query.rows_waiting
      ? `${number(query.rows_waiting)} waiting in the sink` : speed("rows_out")],
    ["Late rows", number(query.late_rows), `${number(query.refused_rows)} refused in all`],
    ["State", format.bytes(query.state_bytes), `${number(query.state_rows)} rows`],
  ];
  if (query.latency) {
    const { p50, p99, longest } = query.latency;
    const rest = `p99 ${seconds(p99)}, longest ${seconds(longest)}`;
    found.push(["Latency, median", seconds(p50), rest]);
  }
  renew(byId("figures"), found, () => found.map(([name, value, more]) =>
    make("div", {}, make("dt", { text: name }), make("dd", { text: value }),
      make("dd", { class: "quiet", text: more }))));
}

function newestRows(query, rows) {
  const found = rows?.queries[query.id];
  byId("rows").hidden = !found;
  if (!found) return;
  const titles = { table: "Newest answer of each key", answers: "Answers", late: "Late rows" };
  for (const [kind, title] of Object.entries(titles)) {
    const host = byId(`rows-${kind}`);
    const { columns, rows: cells } = found[kind];
    host.hidden = kind === "table" && !columns.length;
    const caption = cells.length ? title : `${title}: none so far`;
    renew(host, [caption, columns], () => {
      host.table = new Table(caption, columns.map((name) => [name, "text"]));
      return [host.table.element];
    });
    host.table.fill(cells);
  }
}

function show(now) {
  banner(now);
  const { state, history, rows } = now;
  if (!state) return;
  header(now);
  const query = state.queries.find((each) => each.id === chosen) ?? state.queries[0];
  byId("query").hidden = !query;
  if (!query) return;
  const view = { history, range: history.range(span), mean: span / 30 };
  picker(state.queries, query);
  figures(state, query, history);
  words(query);
  byId("graph-section").hidden = !query.nodes.length;
  if (query.nodes.length) graph.update(query.nodes, state.declared);
  channels.update(query.streams);
  for (const part of parts) part(query, view);
  newestRows(query, rows);
}

function ranges() {
  renew(byId("ranges"), span, () => RANGES.map(([name, length]) => {
    const made = button(name, () => {
      span = length;
      ranges();
      show(poll);
    });
    made.setAttribute("aria-pressed", `${length === span}`);
    return made;
  }));
}

const poll = new Poll(show);
ranges();
byId("follow").addEventListener("click", () => {
  if (poll.paused) poll.start();
  else poll.pause();
  show(poll);
});
setInterval(() => banner(poll), 10_000);
poll.start();
