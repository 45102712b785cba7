// The parts of the page below the lag: charts and tables. Each is hidden while it has no values.
// A view is the input of charts: the history, the range of time, and the seconds over which rates
// are averaged.

import { clock, number, seconds, share, text } from "./format.js";
import { byId, make, Table } from "./dom.js";
import { BarChart } from "./bars.js";
import { LineChart } from "./lines.js";
import { UNITS } from "./plot.js";

/** The series of one query that have values, as they are or as rates. */
class Reader {
  constructor({ id }, { history, mean }) {
    const worth = (name, values, test) => (values.some(test) ? [{ name, values }] : []);
    this.names = (kind) => history.named(id, kind);
    this.value = (name, label) =>
      worth(label, history.series(id, name), (value) => value !== null);
    this.rate = (name, label) => worth(label, history.rates(id, name, mean), (value) => value > 0);
  }

  values(kind) {
    return this.names(kind).flatMap((name) => this.value(`${kind}/${name}`, name));
  }

  positive(kind) {
    return this.values(kind).filter(({ values }) => values.some((value) => value > 0));
  }

  rates(kind) {
    return this.names(kind).flatMap((name) => this.rate(`${kind}/${name}`, name));
  }
}

/** Charts by title, made when they first have values. */
class Wall {
  element = make("div", { class: "wall" });
  #charts = new Map();

  /** Shows charts, each `[title, unit, series]`; returns true if one of them has values. */
  update(charts, { history, range, mean }) {
    const full = charts.filter(([, , series]) => series.length);
    for (const [title, unit, series] of full) {
      if (!this.#charts.has(title)) {
        this.#charts.set(title, new LineChart(title, unit));
        this.element.append(this.#charts.get(title).element);
      }
      const note = unit === UNITS.rate ? `mean of ${seconds(mean)}` : "";
      this.#charts.get(title).update(history.at, series, range, note);
    }
    const titles = full.map(([title]) => title);
    for (const [title, chart] of this.#charts) chart.element.hidden = !titles.includes(title);
    return full.length > 0;
  }
}

const CHARTS = {
  lag: (read) => [["How far behind each stream is", UNITS.seconds, read.values("lag")]],
  flow: (read) => [
    ["Rows a second", UNITS.rate, [...read.rate("rows_in", "in"), ...read.rate("rows_out", "out")]],
    ["Rows held in state", UNITS.rows, read.value("state_rows", "")],
    ["Bytes held in state", UNITS.bytes, read.value("state_bytes", "")],
    ["Latency, 99th percentile", UNITS.seconds, read.value("latency_p99", "")],
  ],
  late: (read) => [["Late rows a second", UNITS.rate, read.rate("late_rows", "")]],
  waits: (read) => [
    ["Share of time waited", UNITS.share, read.positive("idle")],
    ["Timestamps made a second", UNITS.rate, read.rates("timestamps")],
    ["Heartbeats made a second", UNITS.rate, read.rates("heartbeats")],
  ],
  joins: (read) => [...new Set([...read.names("held"), ...read.names("predicted")])].map((name) => {
    const cut = name.lastIndexOf("/");
    const used = read.value(`held/${name}`, "used");
    const predicted = read.value(`predicted/${name}`, "predicted");
    const title = `Rows of ${name.slice(cut + 1)} in ${name.slice(0, cut)}`;
    return [title, UNITS.rows, [...used, ...predicted]];
  }),
  updates: (read) => [
    ["Average staleness", UNITS.seconds, read.values("staleness")],
    ["Updates waiting", UNITS.rows, read.values("waiting")],
  ],
};

const MADE = ["timestamps", "heartbeats", "stray_rows", "backward_marks", "waiting_rows"];

const TABLES = {
  late: ["By channel and reason", [
    ["stream", "text"], ["channel", "text"], ["reason", "text"], ["rows", "number"],
    ["longest late", "number"], ["mean", "number"],
  ], ({ late }) => late.map((line) => [
    line.stream, text(line.channel), line.reason, number(line.rows),
    seconds(line.longest), seconds(line.mean),
  ])],
  idle: ["Share of time waited, by operator", [["operator", "text"], ["share", "gauge"]],
    ({ idle }) => idle.filter((line) => line.share > 0)
      .map((line) => [line.operator, [line.share, share(line.share)]])],
  made: ["By stream", [
    ["stream", "text"], ["timestamps on demand", "number"], ["heartbeats", "number"],
    ["stray rows", "number"], ["marks that went back", "number"], ["rows not read yet", "number"],
  ], ({ streams }) => streams
    .map(({ name, metrics }) => [name, ...MADE.map((each) => metrics[`stream_${each}`])])
    .filter(([, ...counts]) => counts.some((count) => count > 0))
    .map(([name, ...counts]) => [name, ...counts.map(number)])],
  completeness: ["Share of rows on time", [
    ["stream", "text"], ["target", "number"], ["achieved", "number"], ["expected now", "number"],
    ["slack", "number"], ["falls short because", "text"],
  ], ({ streams }) => streams.filter((line) => line.completeness).map((line) => {
    const { target, achieved, expected, slack, shortfall } = line.completeness;
    return [
      line.name, share(target), share(achieved), share(expected), seconds(slack),
      shortfall === null ? "" : text(shortfall),
    ];
  })],
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
  missed: ["Keys staler than their targets", [
    ["key", "text"], ["operator", "text"], ["longest", "gauge"], ["now", "number"],
    ["target", "number"],
  ], ({ updates }) => updates.flatMap(({ operator, missed = [] }) => missed.map((line) => [
    text(line.key), operator, [Math.min(1, line.target / line.longest), seconds(line.longest)],
    seconds(line.now), seconds(line.target),
  ]))],
};

/** A section with its charts, and with tables by name. */
function section(id, ...names) {
  const wall = new Wall();
  const tables = names.map((name) => {
    const [caption, columns, rowsOf] = TABLES[name];
    return { table: new Table(caption, columns), rowsOf };
  });
  const elements = tables.map(({ table }) => table.element);
  byId(id).querySelector(".items").append(wall.element, ...elements);
  return (query, view) => {
    let shown = wall.update(CHARTS[id]?.(new Reader(query, view)) ?? [], view);
    for (const { table, rowsOf } of tables) {
      const rows = rowsOf(query);
      table.element.hidden = !rows.length;
      table.fill(rows);
      shown ||= rows.length > 0;
    }
    byId(id).hidden = !shown;
  };
}

/** The parts of a batch, and the time outside of all of them. */
function withRest({ seconds: whole, parts }) {
  const rest = whole - Object.values(parts).reduce((sum, value) => sum + value, 0);
  return rest > 0.001 ? { ...parts, other: rest } : parts;
}

function batchSection() {
  const times = new BarChart("Time of each batch, by part", UNITS.seconds);
  const counts = new BarChart("Rows of each batch", UNITS.rows);
  byId("batches").querySelector(".items").append(times.element, counts.element);
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
  section("lag"),
  section("flow"),
  section("late", "late"),
  section("waits", "idle", "made"),
  section("joins", "joins"),
  section("strategies", "strategies"),
  section("completeness", "completeness"),
  section("updates", "missed", "keys", "updates"),
  batchSection(),
];
