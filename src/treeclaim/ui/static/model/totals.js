// SPDX-License-Identifier: Apache-2.0
/** Totals of resource classes, and loads. */

import { own } from "./texts.js";

/** The choice of the class that is used most, of each tree its own. */
export const DOMINANT = "";

/**
 * Return how much of a class is used: 0 to 1, more if more is used than the capacity, and null
 * without such an inventory.
 */
export function loadOf(total) {
  if (!total) return null;
  if (total.capacity > 0) return total.used / total.capacity;
  return total.used > 0 ? Infinity : null;
}

/**
 * Return the load of a tree.
 *
 * @param {object} totals By class.
 * @param {string} wanted A class, or DOMINANT.
 * @returns {{load: number|null, name: string}} The load, and of which class it is.
 */
export function loadOfTree(totals, wanted) {
  if (wanted !== DOMINANT) return { load: loadOf(own(totals, wanted)), name: wanted };
  let dominant = { load: null, name: "" };
  for (const [name, total] of Object.entries(totals)) {
    const load = loadOf(total);
    if (load !== null && load > (dominant.load ?? -1)) dominant = { load, name };
  }
  return dominant;
}

const FIRST = ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB"];

/** Order classes: what every host has first, then by name. */
export function byImportance(one, other) {
  const place = (name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return place(one) - place(other) || one.localeCompare(other);
}

/** Return the entries of an object by resource class in the order of importance. */
export const inClassOrder = (byClass) =>
  Object.entries(byClass ?? {}).sort(([one], [other]) => byImportance(one, other));

/** Capacity of an inventory: (total − reserved) × allocation_ratio, a whole number. */
export const capacityOf = ({ total, reserved, allocation_ratio: ratio }) =>
  Math.max(0, Math.floor((total - reserved) * ratio));

/** Return the total of one inventory, with its used and its held amount. */
export const totalOf = (inventory, used, held) => ({
  ...inventory, capacity: capacityOf(inventory), used, held, ratio: inventory.allocation_ratio,
});
