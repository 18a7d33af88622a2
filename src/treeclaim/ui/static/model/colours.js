// SPDX-License-Identifier: Apache-2.0
/**
 * How trees look on a map. Colours of loads: one scale whose lightness falls (in the dark: rises) with the
 * load, so that it can be read without telling hues apart. What is over its capacity stands out of the scale.
 */

import { percent } from "./numbers.js";
import { loadOfTree } from "./totals.js";

const LIGHT = ["#e6eceb", "#c5e4da", "#8bcabb", "#47a89b", "#1d8188", "#14596f", "#0b2c46"];
const DARK = ["#25302f", "#1d4a52", "#226a74", "#2c918f", "#5cb99e", "#a5dfb4", "#f0f7c8"];
const ABOVE = { light: "#c8324a", dark: "#ff6b7a" };
const MARK = { light: "#e07a00", dark: "#ffd166" };

/** The steps: up to which load each colour goes. */
const STEPS = [0, 0.2, 0.4, 0.6, 0.8, 0.999999, 1];
export const STEP_NAMES = ["unused", "to 20 %", "to 40 %", "to 60 %", "to 80 %", "below 100 %", "full"];

/** Steps behind those of loads: more than there is, or lost; and what nobody has proven. */
export const OVER = STEPS.length;
export const UNSURE = STEPS.length + 1;

/** The step of what there is no number of. */
export const NONE = -1;

/** The scheme that the user's system asks for. */
export const scheme = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

export const colours = (which) => ({
  steps: [...(which === "dark" ? DARK : LIGHT), ABOVE[which], MARK[which]],
  outline: which === "dark" ? "#5d6f6d" : "#91a19e",
  // Text on a step: dark on light, light on dark.
  text: (step) => (step === OVER ? "#ffffff" : step === UNSURE ? "#0d1716" : (step >= 4) === (which === "dark") ? "#0d1716" : which === "dark" ? "#ffffff" : step >= 4 ? "#ffffff" : "#0d1716"),
  mark: MARK[which],
  // A sign, and what is around and in it: seen on every step.
  sign: which === "dark" ? ["#e8efed", "#18211f"] : ["#16211f", "#ffffff"],
});

/**
 * How a tree with a load looks.
 *
 * @param {object} totals Of the tree, by class.
 * @param {string} wanted A class, or DOMINANT.
 */
export function lookOfLoad(totals, wanted) {
  const { load, name } = loadOfTree(totals, wanted);
  if (load === null) return { step: NONE, figure: "–", name, words: `no inventory${name && ` of ${name}`}` };
  const figure = percent(load);
  return { step: stepOf(load), figure, name, words: `${figure} of ${name} used${load > 1 ? ", over its capacity" : ""}` };
}

/** Return the step of a load. */
function stepOf(load) {
  for (let step = 0; step < STEPS.length; step += 1) if (load <= STEPS[step]) return step;
  return STEPS.length;
}
