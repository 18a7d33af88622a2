// SPDX-License-Identifier: Apache-2.0
/**
 * The map: one square for each tree, on a canvas that is as high as its visible part.
 *
 * The canvas sticks to the top of a box that scrolls, and is drawn again for each scroll position;
 * so its cost depends on the screen, not on the number of trees.
 */

import { palette } from "../model/colours.js";
import { treeAddress } from "../routes.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./html.js";
import { paint } from "./map_canvas.js";
import { layOut, neighbour, squareAt } from "./map_layout.js";

const TALLEST = 620;
/* Pixels of the map's height; a taller map scrolls. */

/**
 * @param {{title: string, place: string, domain: string, trees: object[]}[]} groups What is where:
 *   the headline of each group, and words for the place of its trees.
 * @param {(tree: object, square: {domain: string}) => object} look How a tree is shown: `step`
 *   (model/colours.js), `figure` and `name` in its square, `words`, and perhaps the meaning of its
 *   `sign`.
 * @param {string} label What the map shows.
 * @param {Map<string, number>} changed When trees changed, by uuid.
 * @param {(tree: object) => boolean} isFound Whether a tree is one that the user looks for.
 */
export function TreeMap({
  groups, look, label = "Map of trees", changed = NEVER, isFound = () => true,
}) {
  const box = useRef(null);
  const canvas = useRef(null);
  const [width, setWidth] = useState(0);
  const [index, setIndex] = useState(-1);
  const colours = usePalette();
  const layout = useMemo(() => (width ? layOut(groups, width) : null), [groups, width]);

  useLayoutEffect(() => {
    const measure = () => setWidth(box.current.clientWidth - 2);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  usePainting({ box, canvas, layout, look, changed, isFound, palette: colours, index });

  const square = layout?.squares[index];
  const shown = square && look(square.tree, square);
  const indexAt = ({ clientX, clientY }) => {
    const { left, top } = box.current.getBoundingClientRect();
    return squareAt(layout, clientX - left, clientY - top + box.current.scrollTop);
  };
  const open = (target) => {
    if (target) location.hash = treeAddress(target.tree.uuid);
  };
  const press = (event) => {
    const isMove = /^(Arrow|Home|End|Page)/.test(event.key);
    if (!isMove && !(square && /^(Enter| )$/.test(event.key))) return;
    event.preventDefault();
    if (!isMove) open(square);
    else {
      const next = square ? neighbour(layout, index, event.key) : 0;
      setIndex(next);
      scrollTo(box.current, layout, next);
    }
  };
  const height = Math.min(layout?.height ?? TALLEST, TALLEST);
  const rest = Math.max(0, (layout?.height ?? 0) - height);
  return html`<div class="tree-map">
    <div class="map-box" ref=${box} tabindex="0" role="application" aria-roledescription="map"
      aria-label=${`${label}. Arrow keys move, Enter opens a tree. The same is in the table.`}
      title=${shown?.sign ?? null} style=${{ height: `${height + 2}px` }}
      onKeyDown=${press} onFocus=${() => index < 0 && setIndex(0)} onBlur=${() => setIndex(-1)}
      onPointerMove=${(event) => setIndex(indexAt(event))} onPointerLeave=${() => setIndex(-1)}
      onClick=${(event) => open(layout.squares[indexAt(event)])}>
      <canvas ref=${canvas} aria-hidden="true"></canvas>
      <div style=${{ height: `${rest}px` }}></div>
    </div>
    <p class="map-told" role="status">${square ? `${square.tree.name}: ${shown.words}${
      square.place ?? ""}${shown.sign ? `. Conditions: ${shown.sign}` : ""}` : " "}</p>
  </div>`;
}

const NEVER = new Map();

/** Scroll so that a square can be seen. */
function scrollTo(box, { squares, size }, index) {
  const { y } = squares[index];
  box.scrollTop = Math.min(y, Math.max(box.scrollTop, y + size - box.clientHeight));
}

/** Return the colours of the map, which follow the scheme of the user's system. */
function usePalette() {
  const [colours, setColours] = useState(palette);
  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const change = () => setColours(palette());
    media.addEventListener("change", change);
    return () => media.removeEventListener("change", change);
  }, []);
  return colours;
}

/** Draw whenever something changed, and go on while squares are marked. */
function usePainting(picture) {
  const { box, layout, changed } = picture;
  const latest = useRef(picture);
  latest.current = picture;
  useLayoutEffect(() => {
    if (!layout) return undefined;
    let frame = 0;
    const draw = () => {
      frame = paint(latest.current) ? requestAnimationFrame(draw) : 0;
    };
    const soon = () => { frame ||= requestAnimationFrame(draw); };
    paint(latest.current);
    if (changed.size) soon();
    const { current } = box;
    current.addEventListener("scroll", soon, { passive: true });
    return () => {
      cancelAnimationFrame(frame);
      current.removeEventListener("scroll", soon);
    };
  });
}
