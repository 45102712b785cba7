// Requests new metrics from the server once a second while the page is visible. Stops while the tab
// is hidden, and after a few failures when the server is gone.

import { History } from "./history.js";

const EVERY = 1000;
const ROWS_EVERY = 2000;
const RETRIES = [2000, 5000];

async function get(path) {
  const answer = await fetch(path, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}`);
  return answer.json();
}

export class Poll {
  history = new History();
  state = null;
  rows = null;
  seen = null;
  failures = 0;
  paused = false;
  #timer = null;
  #busy = false;
  #rowsAt = -Infinity;

  /** `show` is called after every answer and every failure. */
  constructor(show) {
    this.show = show;
    document.addEventListener("visibilitychange", () => this.#next(0));
  }

  /** True if no request follows until the reader resumes. */
  get lost() {
    return this.failures > RETRIES.length;
  }

  start() {
    this.failures = 0;
    this.paused = false;
    this.#next(0);
  }

  pause() {
    this.paused = true;
    clearTimeout(this.#timer);
  }

  #next(after) {
    clearTimeout(this.#timer);
    const over = this.state !== null && !this.state.live;
    if (this.#busy || this.paused || this.lost || over || document.hidden) return;
    this.#timer = setTimeout(() => this.#ask(), after);
  }

  async #ask() {
    const begun = performance.now();
    this.#busy = true;
    try {
      await this.#round(begun);
      this.failures = 0;
      this.seen = Date.now() / 1000;
    } catch {
      this.failures += 1;
    }
    this.#busy = false;
    this.show(this);
    const rest = Math.max(100, EVERY - (performance.now() - begun));
    this.#next(this.failures ? RETRIES[this.failures - 1] : rest);
  }

  async #round(begun) {
    const state = await get("api/state");
    if (this.state && this.state.started !== state.started) this.history = new History();
    const since = this.history.last;
    this.history.merge(await get(since > 0 ? `api/history?since=${since}` : "api/history"));
    if (state.show_rows && (begun - this.#rowsAt >= ROWS_EVERY - EVERY / 2 || !state.live)) {
      this.rows = await get("api/rows");
      this.#rowsAt = begun;
    }
    this.state = state;
  }
}
