// The history of a run: every series by query and name, all as long as `at`.

const MOST = 3600;

export class History {
  at = [];
  #queries = new Map();

  get last() {
    return this.at.at(-1) ?? -Infinity;
  }

  /** Appends newer values. A series without new ones is null for that time. */
  merge({ at, queries }) {
    const first = at.findIndex((moment) => moment > this.last);
    if (first < 0) return;
    const before = this.at.length;
    this.at.push(...at.slice(first));
    for (const [id, columns] of Object.entries(queries)) {
      if (!this.#queries.has(id)) this.#queries.set(id, new Map());
      const held = this.#queries.get(id);
      for (const [name, values] of Object.entries(columns)) {
        if (!held.has(name)) held.set(name, new Array(before).fill(null));
        held.get(name).push(...values.slice(first));
      }
    }
    this.#level();
  }

  #level() {
    const spare = this.at.length > 1.2 * MOST ? this.at.length - MOST : 0;
    const length = this.at.length;
    this.at.splice(0, spare);
    for (const held of this.#queries.values()) {
      for (const values of held.values()) {
        while (values.length < length) values.push(null);
        values.splice(0, spare);
      }
    }
  }

  /** The values of a series; none if there is no such series. */
  series(query, name) {
    return this.#queries.get(query)?.get(name) ?? [];
  }

  /** The names of the series of a kind, without "kind/" in front. */
  named(query, kind) {
    const names = [...(this.#queries.get(query)?.keys() ?? [])];
    const found = names.filter((name) => name.startsWith(`${kind}/`));
    return found.map((name) => name.slice(kind.length + 1));
  }

  /** A running total as its growth a second, each over the `span` seconds before; unknown where
   * the total is, or fell back. */
  rates(query, name, span) {
    const totals = this.series(query, name);
    let from = 0;
    return totals.map((total, to) => {
      while (from < to - 1 && this.at[to] - this.at[from] > span) from += 1;
      if (!to || total === null || totals[from] === null || total < totals[from]) return null;
      return (total - totals[from]) / (this.at[to] - this.at[from]);
    });
  }

  /** The first and last moment of the last `span` seconds, or of a younger run. */
  range(span) {
    const to = this.at.at(-1) ?? 0;
    return [Math.max(to - span, Math.min(this.at[0] ?? 0, to - 5)), to];
  }
}
