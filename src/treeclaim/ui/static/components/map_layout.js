// SPDX-License-Identifier: Apache-2.0
/** Where on the map each tree is: rows of equal squares, a headline above each group. */

const SMALLEST = 11;
const LARGEST = 112;
const GAP = 2;
const HEADLINE = 26;
const WANTED_HEIGHT = 430;
/* Pixels; squares are as large as lets all be seen in that height, within the bounds. */

/**
 * Lay out groups of trees.
 *
 * @param {{title: string, place: string, domain: string, trees: object[]}[]} groups
 * @param {number} width Pixels that there are.
 * @returns {{size: number, columns: number, height: number, rows: object[], squares: object[]}}
 *   `squares` have `x`, `y`, `tree`, `row`, `place`, `domain`; `rows` have `y`, `first`, `count`, or a `title`.
 */
export function layOut(groups, width) {
  const size = sizeFor(groups, width);
  const columns = columnsFor(width, size);
  const squares = [];
  const rows = [];
  let y = 0;
  for (const { title, place, domain, trees } of groups) {
    if (title) {
      rows.push({ y, title, height: HEADLINE });
      y += HEADLINE;
    }
    for (let begin = 0; begin < trees.length; begin += columns) {
      const some = trees.slice(begin, begin + columns);
      rows.push({ y, first: squares.length, count: some.length, height: size + GAP });
      some.forEach((tree, column) => squares.push({ x: column * (size + GAP), y, tree, place, domain, row: rows.length - 1 }));
      y += size + GAP;
    }
    if (title) y += GAP * 3;
  }
  return { size, columns, height: Math.max(y, 1), rows, squares };
}

function sizeFor(groups, width) {
  let low = SMALLEST;
  let high = LARGEST;
  while (low < high) {
    const size = Math.ceil((low + high) / 2);
    if (heightOf(groups, width, size) <= WANTED_HEIGHT) low = size;
    else high = size - 1;
  }
  return low;
}

const columnsFor = (width, size) => Math.max(1, Math.floor((width + GAP) / (size + GAP)));

function heightOf(groups, width, size) {
  const columns = columnsFor(width, size);
  return groups.reduce((height, { title, trees }) =>
    height + (title ? HEADLINE + 3 * GAP : 0) + Math.ceil(trees.length / columns) * (size + GAP), 0);
}

/** Return the index of the square at a point, -1 for none. */
export function squareAt({ size, rows, squares }, x, y) {
  const row = rows.find((candidate) => candidate.count && y >= candidate.y && y < candidate.y + size);
  if (!row) return -1;
  const column = Math.floor(x / (size + GAP));
  if (column < 0 || column >= row.count || x - column * (size + GAP) > size) return -1;
  const index = row.first + column;
  return index < squares.length ? index : -1;
}

/** Return the index to which a key leads from another one. */
export function neighbour({ rows, squares, columns }, index, key) {
  const last = squares.length - 1;
  const clamp = (value) => Math.max(0, Math.min(last, value));
  if (key === "ArrowLeft") return clamp(index - 1);
  if (key === "ArrowRight") return clamp(index + 1);
  if (key === "Home") return 0;
  if (key === "End") return last;
  const step = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 }[key];
  if (!step || last < 0) return index;
  const lines = rows.map((row, number) => ({ row, number })).filter(({ row }) => row.count);
  const here = lines.findIndex(({ number }) => number === squares[index].row);
  const there = lines[Math.max(0, Math.min(lines.length - 1, here + step))].row;
  const column = index - rows[squares[index].row].first;
  return there.first + Math.min(column, there.count - 1, columns - 1);
}
