// SPDX-License-Identifier: Apache-2.0
/**
 * How loads look on a map. They have one scale of colours (in base.css) whose lightness falls with
 * the load, in the dark rises, so that it can be read without telling hues apart. What is over its
 * capacity stands out of the scale.
 */

import { percent } from "./numbers.js";
import { loadOfTree } from "./totals.js";

/** The steps of the scale: the greatest load of each, and its name. */
const STEPS = [
  [0, "unused"], [0.2, "to 20 %"], [0.4, "to 40 %"], [0.6, "to 60 %"], [0.8, "to 80 %"],
  [0.999999, "below 100 %"], [1, "full"],
];

/** Colours besides those of loads: more than there is, or lost; not proven; without a number. */
export const OVER = "over slashed";
export const UNSURE = "unsure slashed";
export const NONE = "none";

/** The colours of loads with their names, as a legend has them. */
export const LOADS = [...STEPS.map(([, name], step) => [`step-${step}`, name]), [OVER, "over"]];

/**
 * How a tree with a load looks.
 *
 * @param {object} totals Of the tree, by class.
 * @param {string} wanted A class, or DOMINANT.
 * @returns {{colour: string, figure: string, name: string, words: string}}
 */
export function lookOfLoad(totals, wanted) {
  const { load, name } = loadOfTree(totals, wanted);
  if (load === null) {
    return { colour: NONE, figure: "–", name, words: `no inventory${name && ` of ${name}`}` };
  }
  const figure = percent(load);
  const step = STEPS.findIndex(([most]) => load <= most);
  const over = load > 1 ? ", over its capacity" : "";
  const colour = step < 0 ? OVER : `step-${step}`;
  return { colour, figure, name, words: `${figure} of ${name} used${over}` };
}
