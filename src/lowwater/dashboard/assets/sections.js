// The parts of the page below the lag: charts and tables. Each hides where it has nothing to say.
// A view is what charts are drawn from: the history, the range of time, and over how many seconds
// rates are averaged.

import { clock, number, seconds, share, text } from "./format.js";
import { byId, make, Table } from "./dom.js";
import { BarChart } from "./bars.js";
import { LineChart } from "./lines.js";
import { UNITS } from "./plot.js";

/** Charts by title, made when they first have something to show. */
export class Wall {
  element = make("div", { class: "wall" });
  #charts = new Map();

  /** Shows `{title, unit, series}`, and says whether there was anything to show. */
  update(wanted, { history, range, mean }) {
    const full = new Map(wanted.filter(({ series }) => series.length).map((one) => [one.title, one]));
    for (const [title, { unit, series }] of full) {
      if (!this.#charts.has(title)) {
        this.#charts.set(title, new LineChart(title, unit));
        this.element.append(this.#charts.get(title).element);
      }
      const note = unit === UNITS.rate ? `mean of ${seconds(mean)}` : "";
      this.#charts.get(title).update(history.at, series, range, note);
    }
    for (const [title, chart] of this.#charts) chart.element.hidden = !full.has(title);
    return full.size > 0;
  }
}

const any = (series, worth) => series.filter(({ values }) => values.some(worth));

function values(query, { history }, name, label) {
  return any([{ name: label, values: history.series(query.id, name) }], (value) => value !== null);
}

function valuesOf(query, view, kind) {
  return view.history.named(query.id, kind).flatMap((name) => values(query, view, `${kind}/${name}`, name));
}

function rates(query, { history, mean }, name, label) {
  return any([{ name: label, values: history.rates(query.id, name, mean) }], (value) => value > 0);
}

function ratesOf(query, view, kind) {
  return view.history.named(query.id, kind).flatMap((name) => rates(query, view, `${kind}/${name}`, name));
}

/** Lag of every stream. */
export const lagCharts = (query, view) => [
  { title: "How far behind each stream is", unit: UNITS.seconds, series: valuesOf(query, view, "lag") },
];

const flowCharts = (query, view) => [
  {
    title: "Rows a second",
    unit: UNITS.rate,
    series: [...rates(query, view, "rows_in", "in"), ...rates(query, view, "rows_out", "out")],
  },
  { title: "Rows held in state", unit: UNITS.rows, series: values(query, view, "state_rows", "") },
  { title: "Bytes held in state", unit: UNITS.bytes, series: values(query, view, "state_bytes", "") },
  { title: "Latency, 99th percentile", unit: UNITS.seconds, series: values(query, view, "latency_p99", "") },
];

const lateCharts = (query, view) => [
  { title: "Late rows a second", unit: UNITS.rate, series: rates(query, view, "late_rows", "") },
];

const waitCharts = (query, view) => [
  { title: "Share of time waited", unit: UNITS.share, series: valuesOf(query, view, "idle") },
  { title: "Timestamps made a second", unit: UNITS.rate, series: ratesOf(query, view, "timestamps") },
  { title: "Heartbeats made a second", unit: UNITS.rate, series: ratesOf(query, view, "heartbeats") },
];

function joinCharts(query, view) {
  const kinds = ["held", "predicted"].map((kind) => view.history.named(query.id, kind));
  return [...new Set(kinds.flat())].map((name) => {
    const cut = name.lastIndexOf("/");
    const series = [
      ...values(query, view, `held/${name}`, "used"),
      ...values(query, view, `predicted/${name}`, "predicted"),
    ];
    return { title: `Rows of ${name.slice(cut + 1)} in ${name.slice(0, cut)}`, unit: UNITS.rows, series };
  });
}

const updateCharts = (query, view) => [
  { title: "Average staleness", unit: UNITS.seconds, series: valuesOf(query, view, "staleness") },
  { title: "Updates waiting", unit: UNITS.rows, series: valuesOf(query, view, "waiting") },
];

const TABLES = {
  late: ["By channel and reason", [
    ["stream", "text"], ["channel", "text"], ["reason", "text"], ["rows", "number"],
    ["longest late", "number"], ["mean", "number"],
  ], ({ late }) => late.map((line) => [
    line.stream, text(line.channel), line.reason, number(line.rows),
    seconds(line.longest), seconds(line.mean),
  ])],
  idle: ["Waited, of all the time", [["operator", "text"], ["share", "gauge"]],
    ({ idle }) => idle.map((line) => [line.operator, [line.share, share(line.share)]])],
  made: ["By stream", [
    ["stream", "text"], ["timestamps on demand", "number"], ["heartbeats", "number"],
    ["stray rows", "number"], ["marks that went back", "number"],
  ], ({ streams }) => streams
    .map((line) => [line.name, line.timestamps, line.heartbeats, line.strays, line.backward_marks])
    .filter(([, ...counts]) => counts.some((count) => count > 0))
    .map(([name, ...counts]) => [name, ...counts.map(number)])],
  completeness: ["Share of rows in time", [
    ["stream", "text"], ["target", "number"], ["achieved", "number"], ["expected now", "number"],
    ["slack", "number"],
  ], ({ streams }) => streams.filter((line) => line.completeness).map(({ name, completeness: found }) => [
    name, share(found.target), share(found.achieved), share(found.expected), seconds(found.slack),
  ])],
  joins: ["By input", [
    ["join", "text"], ["input", "text"], ["predicted", "number"], ["used", "gauge"],
    ["on disk", "number"], ["scrambling", "number"], ["accuracy", "number"], ["late", "number"],
    ["given up", "number"],
  ], ({ joins }) => joins.flatMap((join) => join.inputs.map((input) => [
    join.operator, input.name, number(input.predicted),
    [input.held / (input.predicted || input.held || 1), number(input.held)],
    number(input.on_disk), number(input.scrambling), share(join.accuracy),
    number(join.late_rows), number(join.given_up),
  ]))],
  strategies: ["By operator", [
    ["operator", "text"], ["strategy", "text"], ["switches", "number"], ["because", "text"],
  ], ({ strategies }) => strategies.map((line) => [
    line.operator, text(line.strategy), number(line.switches), text(line.because),
  ])],
  updates: ["By operator", [
    ["operator", "text"], ["keys", "number"], ["staleness", "number"], ["weighted", "number"],
    ["of the queue", "number"], ["waiting", "number"], ["given up", "number"],
  ], ({ updates }) => updates.map((line) => [
    line.operator, number(line.keys), seconds(line.staleness), seconds(line.weighted),
    seconds(line.queue), `${number(line.waiting)} ${line.windows ? "windows" : "rows"}`,
    number(line.given_up),
  ])],
  keys: ["The stalest keys", [
    ["key", "text"], ["operator", "text"], ["on average", "gauge"], ["now", "number"],
    ["updates", "number"], ["shown", "number"],
  ], ({ updates }) => updates.flatMap(({ operator, by_key: keys }) => keys.map((line) => [
    text(line.key), operator, [line.average / (keys[0].average || 1), seconds(line.average)],
    seconds(line.now), number(line.updates), number(line.shown),
  ]))],
};

/** A section of charts, and of tables by name. */
function section(id, charts, ...names) {
  const wall = new Wall();
  const tables = names.map((name) => {
    const [caption, columns, rowsOf] = TABLES[name];
    return [new Table(caption, columns), rowsOf];
  });
  byId(id).append(make("div", { class: "items" }, wall.element, ...tables.map(([table]) => table.element)));
  return (query, view) => {
    let shown = wall.update(charts(query, view), view);
    for (const [table, rowsOf] of tables) {
      const rows = rowsOf(query);
      table.element.hidden = !rows.length;
      table.fill(rows);
      shown ||= rows.length > 0;
    }
    byId(id).hidden = !shown;
  };
}

/** The parts of a batch, and what none of them accounts for. */
function withRest({ seconds: whole, parts }) {
  const rest = whole - Object.values(parts).reduce((sum, value) => sum + value, 0);
  return rest > 0.001 ? { ...parts, other: rest } : parts;
}

function batchSection() {
  const times = new BarChart("Time of each batch, by part", UNITS.seconds);
  const counts = new BarChart("Rows of each batch", UNITS.rows);
  byId("batches").append(make("div", { class: "items halves" }, times.element, counts.element));
  return ({ batches }) => {
    byId("batches").hidden = !batches.length;
    const sums = new Map();
    const bar = (batch, parts) =>
      ({ name: `${batch.id}`, title: `batch ${batch.id}, ${clock(batch.at)}`, parts });
    const bars = batches.map((batch) => bar(batch, withRest(batch)));
    for (const [part, value] of bars.flatMap(({ parts }) => Object.entries(parts))) {
      sums.set(part, (sums.get(part) ?? 0) + value);
    }
    times.update(bars, [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a)));
    counts.update(batches.map((batch) => bar(batch, { rows: batch.rows })), ["rows"]);
  };
}

/** All sections, as functions to call with a query and a view. */
export const sections = () => [
  section("flow", flowCharts),
  section("late", lateCharts, "late"),
  section("waits", waitCharts, "idle", "made"),
  section("completeness", () => [], "completeness"),
  section("joins", joinCharts, "joins"),
  section("strategies", () => [], "strategies"),
  section("updates", updateCharts, "keys", "updates"),
  batchSection(),
];
