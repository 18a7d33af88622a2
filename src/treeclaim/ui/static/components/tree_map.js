// SPDX-License-Identifier: Apache-2.0
/**
 * The map: one square a tree, on a canvas that is as high as what can be seen of it.
 *
 * The canvas sticks to the top of a box that scrolls, and is drawn anew for each place that it is
 * scrolled to; so its cost depends on the screen, not on the number of trees.
 */

import { OVER, UNSURE, colours, scheme } from "../model/colours.js";
import { oneLine } from "../model/texts.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./html.js";
import { layOut, neighbour, squareAt } from "./map_layout.js";

const FLASH_MILLISECONDS = 1_600;
/* How long a square that changed is marked. */

const FIRST_DRAWN = "treeclaim.map";
/* The mark in the browser's timeline at which the map was there for the first time. */

const TALLEST = 620;
const NAME_SIZE = 64;
const SHARE_SIZE = 38;
const CLASS_SIZE = 88;
/* Pixels: most of the map's height; from which size squares have names, shares, classes in them. */

/**
 * @param {{title: string, place: string, domain: string, trees: object[]}[]} groups What is where; of each group its
 *   headline, and what is said of a tree in it.
 * @param {(tree: object, square: {domain: string}) => {step: number, figure: string, name: string, words: string, sign: string}} look How
 *   a tree is shown (model/colours.js): its colour, what stands in its square, and what is said of it; what its sign means, if it has one.
 * @param {string} label What the map shows.
 * @param {Map<string, number>} changed When trees changed, by uuid.
 * @param {(tree: object) => boolean} isFound Whether a tree is one that the user looks for.
 * @param {(tree: object) => void} onOpen Called for the tree that the user chooses.
 */
export function TreeMap({ groups, look, onOpen, label = "Map of trees", changed = NEVER, isFound = () => true }) {
  const box = useRef(null);
  const canvas = useRef(null);
  const [width, setWidth] = useState(0);
  const [at, setAt] = useState({ index: -1, byKey: false });
  const theme = useScheme();
  const layout = useMemo(() => (width ? layOut(groups, width) : null), [groups, width]);

  useLayoutEffect(() => {
    const measure = () => setWidth(box.current.clientWidth - 2);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  usePainting({ box, canvas, layout, look, changed, isFound, theme, at });

  const square = layout?.squares[at.index];
  const tree = square?.tree;
  const shown = tree && look(tree, square);
  const point = (event) => {
    const bounds = box.current.getBoundingClientRect();
    const y = event.clientY - bounds.top + box.current.scrollTop;
    return squareAt(layout, event.clientX - bounds.left, y);
  };
  const press = (event) => {
    if ((event.key === "Enter" || event.key === " ") && tree) {
      event.preventDefault();
      onOpen(tree);
      return;
    }
    const next = at.index < 0 ? 0 : neighbour(layout, at.index, event.key);
    if (!/^(Arrow|Home|End|Page)/.test(event.key)) return;
    event.preventDefault();
    setAt({ index: next, byKey: true });
    show(box.current, layout, next);
  };
  const height = layout ? Math.min(layout.height, TALLEST) : TALLEST;
  return html`<div class="tree-map">
    <div class="map-box" ref=${box} tabindex="0" role="application" aria-roledescription="map"
      aria-label=${`${label}. Arrow keys move, Enter opens a tree. The same is in the table.`}
      title=${shown?.sign ?? null} style=${{ height: `${height + 2}px` }}
      onKeyDown=${press} onFocus=${() => at.index < 0 && setAt({ index: 0, byKey: true })}
      onBlur=${() => setAt({ index: -1, byKey: false })}
      onPointerMove=${(event) => setAt({ index: point(event), byKey: false })}
      onPointerLeave=${() => setAt({ index: -1, byKey: false })}
      onClick=${(event) => { const index = point(event); if (index >= 0) onOpen(layout.squares[index].tree); }}>
      <canvas ref=${canvas} aria-hidden="true"></canvas>
      <div class="map-rest" style=${{ height: `${Math.max(0, (layout?.height ?? 0) - height)}px` }}></div>
    </div>
    <p class="map-told" role="status">${tree ? `${tree.name}: ${shown.words}${square.place ?? ""}${shown.sign ? `. Conditions: ${shown.sign}` : ""}` : " "}</p>
  </div>`;
}

const NEVER = new Map();

/** Scroll so that a square can be seen. */
function show(box, { squares, size }, index) {
  const { y } = squares[index];
  if (y < box.scrollTop) box.scrollTop = y;
  else if (y + size > box.scrollTop + box.clientHeight) box.scrollTop = y + size - box.clientHeight;
}

function useScheme() {
  const [theme, setTheme] = useState(scheme());
  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const change = () => setTheme(scheme());
    media.addEventListener("change", change);
    return () => media.removeEventListener("change", change);
  }, []);
  return theme;
}

/** Draw whenever something changed, and go on while squares are marked. */
function usePainting(shown) {
  const { box, layout, changed } = shown;
  const latest = useRef(shown);
  latest.current = shown;
  useLayoutEffect(() => {
    if (!layout) return undefined;
    let frame = 0;
    const draw = () => {
      frame = 0;
      if (paint(latest.current)) frame = requestAnimationFrame(draw);
    };
    const soon = () => { frame ||= requestAnimationFrame(draw); };
    paint(latest.current);
    if (changed.size) soon();
    const { current } = box;
    current.addEventListener("scroll", soon, { passive: true });
    return () => { cancelAnimationFrame(frame); current.removeEventListener("scroll", soon); };
  });
}

/** Draw what can be seen; tell whether something moves. */
function paint({ box, canvas, layout, look, changed, isFound, theme, at }) {
  const { clientWidth: width, clientHeight: height, scrollTop: top } = box.current;
  const context = prepared(canvas.current, width, height);
  const palette = colours(theme);
  const now = performance.now();
  if (!performance.getEntriesByName(FIRST_DRAWN).length) performance.mark(FIRST_DRAWN);
  let moves = false;
  for (const row of layout.rows) {
    if (row.y + row.height < top || row.y > top + height) continue;
    if (row.title) {
      headline(context, row, top, width, theme);
      continue;
    }
    for (let index = row.first; index < row.first + row.count; index += 1) {
      const square = layout.squares[index];
      const age = now - (changed.get(square.tree.uuid) ?? -Infinity);
      const mark = age < FLASH_MILLISECONDS ? 1 - age / FLASH_MILLISECONDS : 0;
      moves ||= mark > 0;
      drawSquare(context, square, layout.size, top, {
        palette, mark, ...look(square.tree, square), isFaded: !isFound(square.tree), isAt: index === at.index,
      });
    }
  }
  return moves;
}

function prepared(canvas, width, height) {
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

function headline(context, { y, title }, top, width, theme) {
  context.globalAlpha = 1;
  context.fillStyle = theme === "dark" ? "#c3d0ce" : "#3c4a48";
  context.font = "600 13px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillText(clipped(context, title, width - 2), 1, y - top + 14);
}

function drawSquare(context, { x, y: absolute, tree }, size, top, { palette, mark, step, figure, name, sign, isFaded, isAt }) {
  const y = absolute - top;
  const radius = size > 30 ? 6 : 2;
  context.globalAlpha = isFaded ? 0.18 : 1;
  context.beginPath();
  context.roundRect(x + 0.5, y + 0.5, size - 1, size - 1, radius);
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
  if (step === OVER || step === UNSURE) cross(context, x, y, size, palette.text(step));
  if (size >= SHARE_SIZE && !isFaded) label(context, x, y, size, { tree, figure, name, sign, step, palette });
  if (sign) drawSign(context, x, y, size, palette.sign);
  context.globalAlpha = 1;
  if (mark > 0) ring(context, x, y, size, radius, palette.mark, 2 + 2 * mark, Math.min(1, 2 * mark));
  if (isAt) ring(context, x, y, size, radius, palette.mark, 2.5, 1);
}

/** No entry: a disc with a bar in it, in the upper right corner. */
function drawSign(context, x, y, size, [ink, around]) {
  const radius = signRadius(size);
  const inset = radius + size / 15;
  const [across, down] = [x + size - inset, y + inset];
  context.beginPath();
  context.arc(across, down, radius, 0, 2 * Math.PI);
  context.fillStyle = ink;
  context.fill();
  context.strokeStyle = around;
  context.lineWidth = 1;
  context.stroke();
  context.fillStyle = around;
  context.fillRect(across - radius * 0.6, down - radius * 0.2, radius * 1.2, radius * 0.4);
}

const signRadius = (size) => Math.min(8, Math.max(4, size * 0.13));

/** Mark what is not well by more than a colour. */
function cross(context, x, y, size, colour) {
  context.strokeStyle = colour;
  context.lineWidth = Math.max(1, size / 12);
  context.beginPath();
  context.moveTo(x + size * 0.3, y + size * 0.7);
  context.lineTo(x + size * 0.7, y + size * 0.3);
  context.stroke();
}

function ring(context, x, y, size, radius, colour, width, alpha) {
  context.globalAlpha = alpha;
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.roundRect(x + width / 2 - 0.5, y + width / 2 - 0.5, size - width + 1, size - width + 1, radius);
  context.stroke();
  context.globalAlpha = 1;
}

function label(context, x, y, size, { tree, figure, name, sign, step, palette }) {
  context.fillStyle = step < 0 ? palette.outline : palette.text(step);
  context.textBaseline = "alphabetic";
  if (size < NAME_SIZE) {
    context.font = "600 11px system-ui, sans-serif";
    context.fillText(figure, x + 5, y + size - 7, size - 8);
    return;
  }
  context.font = "600 17px system-ui, sans-serif";
  context.fillText(figure, x + 9, y + size - 12, size - 16);
  context.font = "12px system-ui, sans-serif";
  context.fillText(clipped(context, tree.name, size - 16 - (sign ? 2 * signRadius(size) + 2 : 0)), x + 9, y + 20);
  if (size < CLASS_SIZE || !name) return;
  context.font = "11px system-ui, sans-serif";
  context.fillText(clipped(context, name, size - 16), x + 9, y + size - 31);
}

function clipped(context, name, width) {
  const text = oneLine(name);
  if (context.measureText(text).width <= width) return text;
  let shown = text;
  while (shown.length > 1 && context.measureText(`${shown}…`).width > width) shown = shown.slice(0, -1);
  return `${shown}…`;
}
