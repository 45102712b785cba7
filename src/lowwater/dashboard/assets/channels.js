// Every channel of the chosen stream, a page at a time, the one furthest behind first.

import * as format from "./format.js";
import { byId, make, renew, say, Table } from "./dom.js";

const PAGE = 7;

export class Channels {
  #streams = [];
  #page = 0;
  #table = new Table("Furthest behind first", [
    ["channel", "text"], ["mark", "text"], ["behind", "gauge"], ["late", "number"],
    ["silent for", "number"],
  ]);

  constructor() {
    byId("channels").append(this.#table.element);
    const turned = (by) => () => {
      this.#page += by;
      this.#show();
    };
    byId("channel-back").addEventListener("click", turned(-1));
    byId("channel-next").addEventListener("click", turned(1));
    for (const id of ["channel-stream", "channel-search"]) {
      byId(id).addEventListener("input", () => {
        this.#page = 0;
        this.#show();
      });
    }
  }

  update(streams) {
    this.#streams = streams.filter((stream) => stream.channel_count);
    byId("channels").hidden = !this.#streams.length;
    if (!this.#streams.length) return;
    this.#offer(this.#streams.map((stream) => stream.name));
    this.#show();
  }

  /** Shows the channels of the stream of that name, if there is one. */
  choose(name) {
    if (!this.#streams.some((stream) => stream.name === name)) return;
    byId("channel-stream").value = name;
    this.#page = 0;
    this.#show();
  }

  /** Lists the streams to choose from; the one furthest behind is chosen first. */
  #offer(names) {
    const select = byId("channel-stream");
    const furthest = this.#streams.toSorted((a, b) => (b.lag ?? -1) - (a.lag ?? -1))[0].name;
    const chosen = names.includes(select.value) ? select.value : furthest;
    renew(select, names, () => names.map((name) => make("option", { value: name, text: name })));
    select.value = chosen;
  }

  #show() {
    const stream = this.#streams.find((each) => each.name === byId("channel-stream").value);
    if (!stream) return;
    const sought = byId("channel-search").value.trim().toLowerCase();
    const found = stream.channels.filter(({ name }) => `${name}`.toLowerCase().includes(sought));
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    this.#page = Math.min(pages - 1, Math.max(0, this.#page));
    const first = this.#page * PAGE;
    const longest = Math.max(1e-9, ...stream.channels.map((channel) => channel.lag ?? 0));
    this.#table.fill(found.slice(first, first + PAGE).map((channel) => [
      format.text(channel.name),
      channel.stale ? `${format.text(channel.mark)}, stale` : format.text(channel.mark),
      [(channel.lag ?? 0) / longest, format.seconds(channel.lag)],
      format.number(channel.late_rows), format.seconds(channel.silent),
    ]));
    say(byId("channel-count"), this.#count(stream, found.length, first, sought));
    byId("channel-back").disabled = this.#page === 0;
    byId("channel-next").disabled = this.#page === pages - 1;
  }

  #count(stream, found, first, sought) {
    const listed = stream.channels.length;
    const cut = stream.channel_count > listed;
    const all = cut ? `the ${listed} furthest of ${format.number(stream.channel_count)}` : `${listed}`;
    if (!found) return `none of ${all}`;
    const part = `${first + 1}–${Math.min(first + PAGE, found)} of`;
    return sought ? `${part} ${found} found in ${all}` : `${part} ${all}`;
  }
}
