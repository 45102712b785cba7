// The parts of the page below the lag: charts and tables. Each hides where it has nothing to say.

import * as format from "./format.js";
import { byId, make, Table } from "./dom.js";
import { BarChart } from "./bars.js";
import { LineChart } from "./lines.js";
import { UNITS } from "./plot.js";

/** Charts by title, made when they first have something to show. */
export class Wall {
  #charts = new Map();

  constructor() {
    this.element = make("div", { class: "wall" });
  }

  /** Shows `{title, unit, series}`, and says whether there was anything to show. */
  update(wanted, at, range) {
    const full = wanted.filter(({ series }) => series.length);
    for (const { title, unit, series } of full) {
      if (!this.#charts.has(title)) this.#add(title, unit);
      this.#charts.get(title).element.hidden = false;
      this.#charts.get(title).update(at, series, range);
    }
    const shown = new Set(full.map(({ title }) => title));
    for (const [title, chart] of this.#charts) chart.element.hidden = !shown.has(title);
    this.element.hidden = !full.length;
    return full.length > 0;
  }

  #add(title, unit) {
    const chart = new LineChart(title, unit);
    this.#charts.set(title, chart);
    this.element.append(chart.element);
  }
}

/** Series that have at least one known value; of rates, at least one above zero. */
const told = (series) => series.filter(({ values }) => values.some((value) => value !== null));
const moving = (series) => series.filter(({ values }) => values.some((value) => value > 0));

const single = (history, query, name, label) => told([{ name: label, values: history.series(query, name) }]);

const each = (history, query, kind) =>
  told(history.named(query, kind).map((name) => ({ name, values: history.series(query, `${kind}/${name}`) })));

const rates = (history, query, kind) =>
  history.named(query, kind).map((name) => ({ name, values: history.rates(query, `${kind}/${name}`) }));

/** Lag of every stream. */
export function lagCharts({ id }, history) {
  return [{ title: "How far behind each stream is", unit: UNITS.seconds, series: each(history, id, "lag") }];
}

function flowCharts({ id }, history) {
  const rate = (name, label) => ({ name: label, values: history.rates(id, name) });
  return [
    { title: "Rows a second", unit: UNITS.rate, series: told([rate("rows_in", "in"), rate("rows_out", "out")]) },
    { title: "Rows held in state", unit: UNITS.rows, series: single(history, id, "state_rows", "rows") },
    { title: "Bytes held in state", unit: UNITS.bytes, series: single(history, id, "state_bytes", "bytes") },
    { title: "Late rows a second", unit: UNITS.rate, series: moving([rate("late_rows", "late")]) },
    { title: "Latency, 99 of 100 answers below", unit: UNITS.seconds, series: single(history, id, "latency_p99", "p99") },
  ];
}

function waitCharts({ id }, history) {
  const made = moving(rates(history, id, "timestamps"));
  const beats = moving(rates(history, id, "heartbeats"));
  return [
    { title: "Share of time spent waiting", unit: UNITS.share, series: moving(each(history, id, "idle")) },
    { title: "Timestamps made on demand, a second", unit: UNITS.rate, series: made },
    { title: "Heartbeats made, a second", unit: UNITS.rate, series: beats },
  ];
}

function joinCharts({ id }, history) {
  const names = new Set([...history.named(id, "predicted"), ...history.named(id, "held")]);
  return [...names].map((name) => {
    const cut = name.lastIndexOf("/");
    const pair = [...single(history, id, `held/${name}`, "used"), ...single(history, id, `predicted/${name}`, "predicted")];
    const series = pair.map((line) => ({ ...line, tone: line.name === "used" ? "tone0 dash0" : "tone1 dash1" }));
    return { title: `${name.slice(0, cut)}, input ${name.slice(cut + 1)}: rows`, unit: UNITS.rows, series };
  });
}

function updateCharts({ id }, history) {
  return [
    { title: "Average staleness", unit: UNITS.seconds, series: each(history, id, "staleness") },
    { title: "Rows waiting", unit: UNITS.rows, series: each(history, id, "waiting") },
  ];
}

/** A section of charts and tables. A table is `[caption, columns, rowsOf(query)]`. */
function section(id, charts, ...tables) {
  const wall = new Wall();
  const made = tables.map(([caption, columns, rowsOf]) => [new Table(caption, columns), rowsOf]);
  const grids = make("div", { class: "tables" }, ...made.map(([table]) => table.element));
  byId(id).append(wall.element, grids);
  return (query, history, range) => {
    let shown = wall.update(charts(query, history), history.at, range);
    for (const [table, rowsOf] of made) {
      const rows = rowsOf(query);
      table.element.hidden = !rows.length;
      table.fill(rows);
      shown ||= rows.length > 0;
    }
    byId(id).hidden = !shown;
  };
}

const nothing = () => [];
const { number, seconds, share, text } = format;

function batches() {
  const times = new BarChart("Seconds of each batch, by part", UNITS.seconds);
  const counts = new BarChart("Rows of each batch", UNITS.rows);
  byId("batches").append(make("div", { class: "wall wide" }, times.element, counts.element));
  return ({ batches: all }) => {
    byId("batches").hidden = !all.length;
    if (!all.length) return;
    const title = (batch) => `batch ${batch.id}, ${format.clock(batch.at)}`;
    const sums = new Map();
    const bars = all.map((batch) => ({ name: title(batch), parts: withRest(batch) }));
    for (const { parts } of bars) {
      for (const [part, value] of Object.entries(parts)) sums.set(part, (sums.get(part) ?? 0) + value);
    }
    times.update(bars, [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a)));
    counts.update(all.map((batch) => ({ name: title(batch), parts: { rows: batch.rows } })), ["rows"]);
  };
}

/** The parts of a batch, and what none of them accounts for. */
function withRest(batch) {
  const rest = batch.seconds - Object.values(batch.parts).reduce((sum, value) => sum + value, 0);
  return rest > 0.001 ? { ...batch.parts, other: rest } : batch.parts;
}

/** All sections, as functions to call with a query, the history and the range of the charts. */
export const sections = () => [
  section("flow", flowCharts),
  section("late", nothing, ["Late and refused rows by channel", [
    ["stream", "text"], ["channel", "text"], ["reason", "text"], ["rows", "number"], ["longest late", "number"], ["mean", "number"],
  ], ({ late }) => late.map((line) =>
    [line.stream, text(line.channel), line.reason, number(line.rows), seconds(line.longest), seconds(line.mean)])]),
  section("waits", waitCharts, ["Share of time each operator waited", [
    ["operator", "text"], ["waited", "bar"],
  ], ({ idle }) => idle.map((line) => [line.operator, [line.share, share(line.share)]])], ["What streams were given", [
    ["stream", "text"], ["timestamps on demand", "number"], ["heartbeats", "number"], ["stray rows", "number"], ["marks that went back", "number"],
  ], ({ streams }) => streams.filter((each) => each.timestamps || each.heartbeats || each.strays || each.backward_marks).map((each) =>
    [each.name, number(each.timestamps), number(each.heartbeats), number(each.strays), number(each.backward_marks)])]),
  section("completeness", nothing, ["Completeness of learned streams", [
    ["stream", "text"], ["target", "number"], ["achieved", "number"], ["expected now", "number"], ["slack", "number"],
  ], ({ streams }) => streams.filter((each) => each.completeness).map(({ name, completeness: found }) =>
    [name, share(found.target), share(found.achieved), share(found.expected), seconds(found.slack)])]),
  section("joins", joinCharts, ["Buffers of joins", [
    ["join", "text"], ["input", "text"], ["predicted", "number"], ["used", "bar"], ["on disk", "number"], ["scrambling", "number"],
    ["accuracy", "number"], ["late rows", "number"], ["given up", "number"],
  ], ({ joins }) => joins.flatMap((join) => join.inputs.map((input) => [
    join.operator, input.name, number(input.predicted), [input.held / (input.predicted || input.held || 1), number(input.held)],
    number(input.on_disk), number(input.scrambling), share(join.accuracy), number(join.late_rows), number(join.given_up)]))]),
  section("strategies", nothing, ["Strategies in force", [
    ["operator", "text"], ["strategy", "text"], ["because", "text"], ["switches", "number"],
  ], ({ strategies }) => strategies.map((line) =>
    [line.operator, text(line.strategy), text(line.because), number(line.switches)])]),
  section("updates", updateCharts, ["Update streams", [
    ["operator", "text"], ["keys", "number"], ["staleness", "number"], ["weighted", "number"], ["in the queue", "number"],
    ["waiting", "number"], ["given up", "number"],
  ], ({ updates }) => updates.map((line) => [line.operator, number(line.keys), seconds(line.staleness), seconds(line.weighted),
    seconds(line.queue), `${number(line.waiting)} ${line.windows ? "windows" : "rows"}`, number(line.given_up)])], ["The stalest keys", [
    ["key", "text"], ["operator", "text"], ["on average", "bar"], ["now", "number"], ["updates", "number"], ["shown", "number"],
  ], ({ updates }) => updates.flatMap(({ operator, by_key: keys }) => keys.map((line) =>
    [text(line.key), operator, [line.average / (keys[0].average || 1), seconds(line.average)], seconds(line.now), number(line.updates), number(line.shown)]))]),
  batches(),
];
