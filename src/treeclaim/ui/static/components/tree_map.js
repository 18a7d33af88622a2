// SPDX-License-Identifier: Apache-2.0
/** The map: one square for each tree, in groups. */

import { treeAddress } from "../routes.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./html.js";

const SMALLEST = 11;
const LARGEST = 112;
const GAP = 2;
const HEADLINE = 32;
const WANTED_HEIGHT = 430;
/* Pixels; squares are as large as possible while all fit into that height, within the bounds. */

const SHARE_SIZE = 38;
const NAME_SIZE = 64;
const CLASS_SIZE = 88;
/* Pixels of squares from which on they contain shares, names, classes. */

/**
 * @param {{title: string, place: string, domain: string, trees: object[]}[]} groups What is where:
 *   the headline of each group, and words for the place of its trees.
 * @param {(tree: object, group: object) => object} look How a tree is shown: `colour` (a class of
 *   parts.css), `figure` and `name` in its square, and `words`; the same function while nothing
 *   changes, so that squares are drawn only then.
 * @param {Map<string, {words: string}>} conditions Of the trees that have a sign, by uuid.
 * @param {string} label What the map shows.
 * @param {string} sought A part of the names that the user looks for.
 */
export function TreeMap({ groups, look, conditions, label = "Map of trees", sought = "" }) {
  const box = useRef(null);
  const [width, setWidth] = useState(0);
  const [index, setIndex] = useState(-1);
  useLayoutEffect(() => {
    const measure = () => setWidth(box.current.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const places = useMemo(() => groups.flatMap((group) =>
    group.trees.map((tree) => ({ tree, group }))), [groups]);
  const size = useMemo(() => sizeFor(groups, width), [groups, width]);
  const squares = useMemo(() => {
    let place = 0;
    return groups.map(({ title, trees, ...group }, number) => html`<div key=${number}>
      ${title && html`<div class="map-title">${title}</div>`}
      <div class="squares">${trees.map((tree) => square(place++, tree, size, {
        ...look(tree, group), sign: conditions.has(tree.uuid),
        isFaded: !tree.name.toLowerCase().includes(sought),
      }))}</div></div>`);
  }, [groups, size, look, conditions, sought]);
  useEffect(() => {
    const element = squaresIn(box)[index];
    element?.classList.add("current");
    return () => element?.classList.remove("current");
  }, [index, squares]);

  const current = places[index];
  const open = (place) => {
    if (place) location.hash = treeAddress(place.tree.uuid);
  };
  const press = (event) => {
    const isMove = /^(Arrow|Home|End)/.test(event.key);
    if (!isMove && !(current && /^(Enter| )$/.test(event.key))) return;
    event.preventDefault();
    if (!isMove) {
      open(current);
      return;
    }
    const next = current ? neighbour(squaresIn(box), index, event.key) : 0;
    setIndex(next);
    squaresIn(box)[next]?.scrollIntoView({ block: "nearest" });
  };
  const indexAt = ({ target }) => Number(target.closest(".square")?.dataset.index ?? -1);
  const sign = current && conditions.get(current.tree.uuid)?.words;
  return html`<div class="tree-map">
    <div class="map-box" ref=${box} tabindex="0" role="application" aria-roledescription="map"
      aria-label=${`${label}. Arrow keys move, Enter opens a tree. The same is in the table.`}
      title=${sign ?? null} style=${{ "--size": `${size}px` }} onKeyDown=${press}
      onFocus=${() => index < 0 && setIndex(0)} onBlur=${() => setIndex(-1)}
      onPointerOver=${(event) => setIndex(indexAt(event))} onPointerLeave=${() => setIndex(-1)}
      onClick=${(event) => open(places[indexAt(event)])}>
      <div aria-hidden="true">${width > 0 && squares}</div></div>
    <p class="map-told" role="status">${current ? `${current.tree.name}: ${
      look(current.tree, current.group).words}${current.group.place}${
      sign ? `. Conditions: ${sign}` : ""}` : " "}</p>
  </div>`;
}

const squaresIn = (box) => box.current.getElementsByClassName("square");

function square(index, tree, size, { colour, figure, name, sign, isFaded }) {
  const isNarrow = size < NAME_SIZE || figure.length > 6;
  return html`
    <div key=${tree.uuid} class=${`square ${colour}${isFaded ? " faded" : ""}`} data-index=${index}>
    ${size >= NAME_SIZE && html`<span class="tree-name">${tree.name}</span>`}
    ${size >= CLASS_SIZE && html`<span class="class">${name}</span>`}
    ${size >= SHARE_SIZE && html`<b class=${isNarrow ? "narrow" : ""}>${figure}</b>`}
    ${sign && html`<span class="sign"></span>`}</div>`;
}

function sizeFor(groups, width) {
  const heightFor = (size) => {
    const columns = Math.max(1, Math.floor((width + GAP) / (size + GAP)));
    return groups.reduce((height, { title, trees }) => height + (title ? HEADLINE : 0)
      + Math.ceil(trees.length / columns) * (size + GAP), 0);
  };
  let size = LARGEST;
  while (size > SMALLEST && heightFor(size) > WANTED_HEIGHT) size -= 1;
  return size;
}

/** Return the index of the square to which a key leads from another square. */
function neighbour(squares, index, key) {
  const last = squares.length - 1;
  if (key === "Home") return 0;
  if (key === "End") return last;
  if (key === "ArrowLeft") return Math.max(0, index - 1);
  if (key === "ArrowRight") return Math.min(last, index + 1);
  return inNextRow(squares, index, key === "ArrowUp" ? -1 : 1);
}

/** Return the index of the square above (step −1) or below (step 1) a square, or the nearest. */
function inNextRow(squares, index, step) {
  const { offsetLeft: left, offsetTop: top } = squares[index];
  let next = index;
  while (squares[next]?.offsetTop === top) next += step;
  if (!squares[next]) return index;
  const row = squares[next].offsetTop;
  while (squares[next + step]?.offsetTop === row
    && step * (squares[next].offsetLeft - left) < 0) next += step;
  return next;
}
