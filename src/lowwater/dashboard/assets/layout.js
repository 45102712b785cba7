// The places of the nodes of a query: a column for every step from the streams, few crossings, and
// edges that go around nodes. An edge over several columns has a bend in each of them.

export const CARD = { width: 190, height: 78 };
const SMALL_CARD = { ...CARD, height: 40 };
const LONG_COLUMN = 5;
const GAP = { across: 42, down: 14 };
const BEND_HEIGHT = 10;
const EDGE = 12;
const SWEEPS = 9;

/** Columns from the longest way to each node; results are all in the last one. */
function depths(nodes) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const found = new Map();
  const depth = (id) => {
    if (!found.has(id)) {
      found.set(id, 0);
      const before = byId.get(id).inputs.filter((input) => byId.has(input)).map(depth);
      found.set(id, before.length ? 1 + Math.max(...before) : 0);
    }
    return found.get(id);
  };
  nodes.forEach((node) => depth(node.id));
  const last = Math.max(...found.values());
  nodes.filter((node) => node.kind === "result").forEach((node) => found.set(node.id, last));
  return found;
}

/** Columns of nodes and bends, each knowing its neighbours on both sides; and the edges. */
function columnsOf(nodes, depth, card) {
  const columns = Array.from({ length: 1 + Math.max(...depth.values()) }, () => []);
  const place = (column, height) => {
    const item = { column, height, left: [], right: [], y: 0 };
    columns[column].push(item);
    return item;
  };
  const items = new Map(nodes.map(({ id }) => [id, place(depth.get(id), card.height)]));
  const edges = [];
  for (const node of nodes) {
    for (const input of node.inputs.filter((each) => items.has(each))) {
      const way = [items.get(input)];
      for (let c = depth.get(input) + 1; c < depth.get(node.id); c += 1) {
        way.push(place(c, BEND_HEIGHT));
      }
      way.push(items.get(node.id));
      way.slice(1).forEach((item, i) => {
        item.left.push(way[i]);
        way[i].right.push(item);
      });
      edges.push({ from: input, to: node.id, way });
    }
  }
  return { columns, items, edges };
}

const middle = (item) => item.y + item.height / 2;

function middleOfNeighbours(item, side) {
  const near = item[side];
  if (!near.length) return middle(item);
  return near.reduce((sum, each) => sum + middle(each), 0) / near.length;
}

/** Puts the items of a column below each other, as near to their ideal middles as they can be. */
function settle(column, ideal) {
  let free = -Infinity;
  let moved = 0;
  for (const item of column) {
    const best = ideal.get(item) - item.height / 2;
    item.y = Math.max(free, best);
    free = item.y + item.height + GAP.down;
    moved += item.y - best;
  }
  for (const item of column) item.y -= moved / column.length;
}

function arrange(columns) {
  for (const column of columns) {
    column.forEach((item, i) => (item.y = i * (CARD.height + GAP.down)));
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const side = sweep % 2 ? "right" : "left";
    for (const column of sweep % 2 ? columns.toReversed() : columns) {
      const ideal = new Map(column.map((item) => [item, middleOfNeighbours(item, side)]));
      column.sort((a, b) => ideal.get(a) - ideal.get(b));
      settle(column, ideal);
    }
  }
  const top = Math.min(...columns.flat().map((item) => item.y));
  columns.flat().forEach((item) => (item.y += EDGE - top));
}

const leftOf = (item) => EDGE + item.column * (CARD.width + GAP.across);

function pathOf(way) {
  let path = "";
  way.forEach((item, i) => {
    const [x, y] = [leftOf(item), middle(item)];
    if (i) {
      const half = x - GAP.across / 2;
      path += `C${half} ${middle(way[i - 1])} ${half} ${y} ${x} ${y}`;
    }
    if (!i) path += `M${x + CARD.width} ${y}`;
    else if (i < way.length - 1) path += `H${x + CARD.width}`;
  });
  return path;
}

/** Places of nodes by id, edges with their paths, and the size of it all. Where a column is long
 * its cards, and so all cards, are small. */
export function layout(nodes) {
  const depth = depths(nodes);
  const counts = Map.groupBy(depth.values(), (column) => column).values();
  const small = [...counts].some((column) => column.length > LONG_COLUMN);
  const { columns, items, edges } = columnsOf(nodes, depth, small ? SMALL_CARD : CARD);
  arrange(columns);
  const all = columns.flat();
  return {
    places: new Map([...items].map(([id, item]) =>
      [id, { x: leftOf(item), y: item.y, height: item.height, small }])),
    edges: edges.map(({ from, to, way }) => ({ from, to, path: pathOf(way) })),
    width: columns.length * (CARD.width + GAP.across) - GAP.across + 2 * EDGE,
    height: Math.max(...all.map((item) => item.y + item.height)) + EDGE,
  };
}
