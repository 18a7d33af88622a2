// SPDX-License-Identifier: Apache-2.0
/** Shared by all components: templates, hooks, and reads of the API. */

import { createContext, h, render } from "../vendor/preact.js";
import {
  useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState,
} from "../vendor/hooks.js";
import htm from "../vendor/htm.js";
import { oneLine } from "../model/texts.js";

/* What people read, besides the text between tags. */
const READ = ["title", "aria-label", "alt"];

/* Elements with several lines of text, which other functions have escaped. */
const VERBATIM = new Set(["pre", "textarea"]);

/** Create an element; each text in it becomes one escaped line, wherever the text is from. */
function element(type, props, ...children) {
  if (VERBATIM.has(type)) return h(type, props, ...children);
  for (const name of READ) {
    if (typeof props?.[name] === "string") props[name] = oneLine(props[name]);
  }
  return h(type, props, ...children.map(shown));
}

function shown(child) {
  if (Array.isArray(child)) return child.map(shown);
  return typeof child === "string" ? oneLine(child) : child;
}

const made = htm.bind(element);

/* A line break of a template's source within a text; htm drops those beside tags and values. */
const SOURCE_BREAK = /([^\s>])\s*\n\s*(?=[^\s<])/g;

/* The texts of each template with spaces for its line breaks; htm caches by their identity. */
const joined = new WeakMap();

function joinLines(strings) {
  if (!joined.has(strings)) {
    joined.set(strings, strings.map((text) => text.replace(SOURCE_BREAK, "$1 ")));
  }
  return joined.get(strings);
}

/** Make the elements of a template; texts beside its elements are like those in them. */
export const html = (strings, ...values) => shown(made(joinLines(strings), ...values));
export {
  render, useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef,
  useState,
};

/** The session: `api`, and `revision`, which counts how often the server came back. */
export const Session = createContext(null);

/**
 * Read an answer, and read it again when something that it depends on changes.
 *
 * @param {(api: object, signal: AbortSignal) => Promise<any>} load Reads it.
 * @param {any[]} on Dependencies.
 * @returns {{value: any, error: Error|null, isBusy: boolean, again: () => void}} The last value
 *   stays while the next one is on its way.
 */
export function useAnswer(load, on) {
  const { api, revision } = useContext(Session);
  const [state, setState] = useState({ value: undefined, error: null, isBusy: true });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    setState((before) => ({ ...before, error: null, isBusy: true }));
    load(api, abort.signal).then(
      (value) => abort.signal.aborted || setState({ value, error: null, isBusy: false }),
      (error) => abort.signal.aborted
        || setState((before) => ({ ...before, error, isBusy: false })),
    );
    return () => abort.abort();
  }, [api, revision, turn, ...on]);
  return { ...state, again: useCallback(() => setTurn((before) => before + 1), []) };
}
