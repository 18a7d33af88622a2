// SPDX-License-Identifier: Apache-2.0
/**
 * How trees look on a map. Loads have one scale whose lightness falls (in the dark: rises) with the
 * load, so that it can be read without telling hues apart; base.css has the colours. What is over
 * its capacity stands out of the scale.
 */

import { percent } from "./numbers.js";
import { loadOfTree } from "./totals.js";

const STEPS = [0, 0.2, 0.4, 0.6, 0.8, 0.999999, 1];
/* The greatest load of each step. */

export const STEP_NAMES = [
  "unused", "to 20 %", "to 40 %", "to 60 %", "to 80 %", "below 100 %", "full",
];

/** Steps behind those of loads: more than there is, or lost; and what nobody has proven. */
export const OVER = STEPS.length;
export const UNSURE = STEPS.length + 1;

/** The step of what there is no number of. */
export const NONE = -1;

/** Return the colours of the map in the scheme that the user's system asks for. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`);
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const isLightStep = (step) => step === UNSURE || (step === OVER ? isDark : step >= 4 === isDark);
  return {
    steps: [...STEPS.map((_, step) => colour(`step-${step}`)), colour("over"), colour("mark")],
    textOn: (step) => (isLightStep(step) ? "#0d1716" : "#ffffff"),
    outline: colour("line-strong"), mark: colour("mark"), headline: colour("ink-soft"),
    sign: { disc: colour("ink"), bar: colour("panel") },
  };
}

/**
 * How a tree with a load looks.
 *
 * @param {object} totals Of the tree, by class.
 * @param {string} wanted A class, or DOMINANT.
 * @returns {{step: number, figure: string, name: string, words: string}}
 */
export function lookOfLoad(totals, wanted) {
  const { load, name } = loadOfTree(totals, wanted);
  if (load === null) {
    return { step: NONE, figure: "–", name, words: `no inventory${name && ` of ${name}`}` };
  }
  const figure = percent(load);
  const step = STEPS.findIndex((most) => load <= most);
  const over = load > 1 ? ", over its capacity" : "";
  return { step: step < 0 ? OVER : step, figure, name, words: `${figure} of ${name} used${over}` };
}
