// SPDX-License-Identifier: Apache-2.0
/** Draws the part of a map that can be seen onto a canvas. */

import { OVER, UNSURE } from "../model/colours.js";
import { oneLine } from "../model/texts.js";

const FLASH_MILLISECONDS = 1_600;
/* How long a square that changed is marked. */

const FIRST_DRAWN = "treeclaim.map";
/* The mark in the browser's timeline when the map was drawn for the first time. */

const SHARE_SIZE = 38;
const NAME_SIZE = 64;
const CLASS_SIZE = 88;
/* Pixels of squares from which on they contain shares, names, classes. */

const FONT = "system-ui, sans-serif";

/** Draw what can be seen; return whether the picture moves. See TreeMap for the parameters. */
export function paint({ box, canvas, layout, look, changed, isFound, palette, index: current }) {
  const { clientWidth: width, clientHeight: height, scrollTop: top } = box.current;
  const context = prepared(canvas.current, width, height);
  const now = performance.now();
  if (!performance.getEntriesByName(FIRST_DRAWN).length) performance.mark(FIRST_DRAWN);
  let moves = false;
  context.translate(0, -top);
  for (const row of layout.rows) {
    if (row.y + row.height < top || row.y > top + height) continue;
    if (row.title) drawHeadline(context, row, width, palette);
    for (let index = row.first; index < row.first + row.count; index += 1) {
      const square = layout.squares[index];
      const age = now - (changed.get(square.tree.uuid) ?? -Infinity);
      const flash = Math.max(0, 1 - age / FLASH_MILLISECONDS);
      moves ||= flash > 0;
      drawSquare(context, { ...square, size: layout.size }, look(square.tree, square), palette, {
        flash, isFaded: !isFound(square.tree), isCurrent: index === current,
      });
    }
  }
  return moves;
}

function prepared(canvas, width, height) {
  const scale = devicePixelRatio || 1;
  const [columns, lines] = [Math.round(width * scale), Math.round(height * scale)];
  // Setting the size clears the canvas, and is slow.
  if (canvas.width !== columns || canvas.height !== lines) {
    Object.assign(canvas, { width: columns, height: lines });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

function drawHeadline(context, { y, title }, width, palette) {
  context.globalAlpha = 1;
  context.fillStyle = palette.headline;
  context.font = `600 13px ${FONT}`;
  context.textBaseline = "middle";
  context.fillText(clipped(context, title, width - 2), 1, y + 14);
}

function drawSquare(context, square, look, palette, { flash, isFaded, isCurrent }) {
  const { x, y, size } = square;
  const { step, sign } = look;
  context.globalAlpha = isFaded ? 0.18 : 1;
  outline(context, square, 1);
  if (step >= 0) {
    context.fillStyle = palette.steps[step];
    context.fill();
  }
  if (step <= 0) {
    context.strokeStyle = palette.outline;
    context.setLineDash(step < 0 ? [2, 2] : []);
    context.lineWidth = 1;
    context.stroke();
    context.setLineDash([]);
  }
  if (step === OVER || step === UNSURE) {
    // What is not well is marked by more than a colour.
    context.strokeStyle = palette.textOn(step);
    context.lineWidth = Math.max(1, size / 12);
    context.beginPath();
    context.moveTo(x + size * 0.3, y + size * 0.7);
    context.lineTo(x + size * 0.7, y + size * 0.3);
    context.stroke();
  }
  if (size >= SHARE_SIZE && !isFaded) drawTexts(context, square, look, palette);
  if (sign) drawSign(context, square, palette.sign);
  if (flash > 0) drawRing(context, square, palette.mark, 2 + 2 * flash, Math.min(1, 2 * flash));
  if (isCurrent) drawRing(context, square, palette.mark, 2.5, 1);
}

/** Begin the path of a line within the edge of a square. */
function outline(context, { x, y, size }, width) {
  context.beginPath();
  context.roundRect(x + width / 2, y + width / 2, size - width, size - width, size > 30 ? 6 : 2);
}

function drawRing(context, square, colour, width, alpha) {
  context.globalAlpha = alpha;
  context.strokeStyle = colour;
  context.lineWidth = width;
  outline(context, square, width);
  context.stroke();
}

const signRadius = (size) => Math.min(8, Math.max(4, size * 0.13));

/** No entry: a disc with a bar in it, in the upper right corner. */
function drawSign(context, { x, y, size }, { disc, bar }) {
  const radius = signRadius(size);
  const inset = radius + size / 15;
  const [across, down] = [x + size - inset, y + inset];
  context.beginPath();
  context.arc(across, down, radius, 0, 2 * Math.PI);
  context.fillStyle = disc;
  context.fill();
  context.strokeStyle = bar;
  context.lineWidth = 1;
  context.stroke();
  context.fillStyle = bar;
  context.fillRect(across - radius * 0.6, down - radius * 0.2, radius * 1.2, radius * 0.4);
}

function drawTexts(context, { x, y, size, tree }, { step, figure, name, sign }, palette) {
  const write = (font, text, left, down, width) => {
    context.font = `${font} ${FONT}`;
    // Figures are narrowed rather than cut.
    const shown = text === figure ? figure : clipped(context, text, width);
    context.fillText(shown, x + left, y + down, width);
  };
  context.fillStyle = step < 0 ? palette.outline : palette.textOn(step);
  context.textBaseline = "alphabetic";
  if (size < NAME_SIZE) {
    write("600 11px", figure, 5, size - 7, size - 8);
    return;
  }
  write("600 17px", figure, 9, size - 12, size - 16);
  write("12px", tree.name, 9, 20, size - 16 - (sign ? 2 * signRadius(size) + 2 : 0));
  if (size >= CLASS_SIZE) write("11px", name, 9, size - 31, size - 16);
}

function clipped(context, name, width) {
  const text = oneLine(name);
  if (context.measureText(text).width <= width) return text;
  let length = text.length - 1;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return `${text.slice(0, length)}…`;
}
