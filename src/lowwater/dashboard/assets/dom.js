// Elements and tables. Text always goes in as text: names of channels and keys are user data.

function built(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") node.textContent = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** An HTML element; the attribute `text` is its text. */
export const make = (tag, attributes = {}, ...children) =>
  built(document.createElement(tag), attributes, children);

/** An SVG element. */
export const draw = (tag, attributes = {}, ...children) =>
  built(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

export const byId = (id) => document.getElementById(id);

/** Sets the text of an element where it differs, so that a selection in it survives. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Replaces the children of an element where the key differs from last time; the child in focus
 * stays in focus. */
export function renew(element, key, children) {
  const text = JSON.stringify(key);
  if (element.dataset.key === text) return;
  element.dataset.key = text;
  const focused = [...element.children].indexOf(document.activeElement);
  element.replaceChildren(...children());
  element.children[focused]?.focus();
}

/** A table whose rows are kept and only their cells written anew. A column is `[heading, kind]`
 * with kind "text", "number" or "gauge"; the cell of a gauge is `[share, text]`. */
export class Table {
  constructor(caption, columns) {
    this.columns = columns;
    this.body = make("tbody");
    const heads = columns.map(([name, kind]) =>
      make("th", { scope: "col", class: kind, text: name }));
    const top = make("thead", {}, make("tr", {}, ...heads));
    const table = make("table", { "aria-label": caption }, top, this.body);
    const region = { class: "scroll", tabindex: "0", role: "region", "aria-label": caption };
    this.element = make("div", { class: columns.length > 3 ? "table wide" : "table" },
      make("h3", { text: caption }), make("div", region, table));
  }

  fill(rows) {
    while (this.body.rows.length > rows.length) this.body.deleteRow(-1);
    while (this.body.rows.length < rows.length) this.body.append(this.#row());
    rows.forEach((cells, i) => {
      const row = this.body.rows[i];
      cells.forEach((cell, j) => this.#set(row.cells[j], cell));
    });
  }

  #row() {
    const cells = this.columns.map(([, kind], j) => {
      const cell = make(j ? "td" : "th", { class: kind });
      if (!j) cell.scope = "row";
      if (kind === "gauge") cell.append(make("span", { class: "track" }, make("i")), make("b"));
      return cell;
    });
    return make("tr", {}, ...cells);
  }

  #set(cell, value) {
    if (!Array.isArray(value)) {
      say(cell, value);
      return;
    }
    cell.querySelector("i").style.width = `${100 * Math.min(1, Math.max(0, value[0] ?? 0))}%`;
    say(cell.querySelector("b"), value[1]);
  }
}
