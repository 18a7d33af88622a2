// SPDX-License-Identifier: Apache-2.0
/** Where on the map each tree is: rows of equal squares, a headline above each group. */

const SMALLEST = 11;
const LARGEST = 112;
const GAP = 2;
const HEADLINE = 26;
const BELOW_GROUP = 6;
const WANTED_HEIGHT = 430;
/* Pixels; squares are as large as possible while all fit into that height, within the bounds. */

/**
 * Lay out groups of trees.
 *
 * @param {{title: string, place: string, domain: string, trees: object[]}[]} groups
 * @param {number} width Pixels.
 * @returns {{size: number, columns: number, height: number, rows: object[], squares: object[]}}
 *   `squares` have `x`, `y`, `tree`, `row`, `place`, `domain`; `rows` have `y`, `height`, and
 *   either a `title` or `first` and `count`.
 */
export function layOut(groups, width) {
  let size = LARGEST;
  while (size > SMALLEST && heightOf(groups, width, size) > WANTED_HEIGHT) size -= 1;
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
      const row = rows.length;
      rows.push({ y, first: squares.length, count: some.length, height: size + GAP });
      for (const [column, tree] of some.entries()) {
        squares.push({ x: column * (size + GAP), y, tree, place, domain, row });
      }
      y += size + GAP;
    }
    if (title) y += BELOW_GROUP;
  }
  return { size, columns, height: Math.max(y, 1), rows, squares };
}

const columnsFor = (width, size) => Math.max(1, Math.floor((width + GAP) / (size + GAP)));

function heightOf(groups, width, size) {
  const columns = columnsFor(width, size);
  return groups.reduce((height, { title, trees }) => height
    + (title ? HEADLINE + BELOW_GROUP : 0) + Math.ceil(trees.length / columns) * (size + GAP), 0);
}

/** Return the index of the square at a point, -1 for none. */
export function squareAt({ size, rows, squares }, x, y) {
  const row = rows.find((each) => each.count && y >= each.y && y < each.y + size);
  const index = row ? row.first + Math.floor(x / (size + GAP)) : -1;
  const isIn = row && x >= 0 && index < row.first + row.count && x <= squares[index].x + size;
  return isIn ? index : -1;
}

const ROW_STEPS = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 };

/** Return the index to which a key leads from another index. */
export function neighbour({ rows, squares }, index, key) {
  const last = squares.length - 1;
  if (key === "ArrowLeft") return Math.max(0, index - 1);
  if (key === "ArrowRight") return Math.min(last, index + 1);
  if (key === "Home") return 0;
  if (key === "End") return last;
  if (!ROW_STEPS[key] || last < 0) return index;
  const lines = rows.filter(({ count }) => count);
  const row = rows[squares[index].row];
  const place = lines.indexOf(row) + ROW_STEPS[key];
  const target = lines[Math.max(0, Math.min(lines.length - 1, place))];
  return target.first + Math.min(index - row.first, target.count - 1);
}
