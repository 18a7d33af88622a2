// SPDX-License-Identifier: Apache-2.0
/** Totals of resource classes, and loads. */

import { own } from "./texts.js";

/** The choice of the class that is used most, for each tree its own. */
export const DOMINANT = "";

/**
 * Return how much of a class is used: 0 to 1, more where there is more used than capacity, null
 * where there is no such inventory.
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
  let found = { load: null, name: "" };
  for (const [name, total] of Object.entries(totals)) {
    const load = loadOf(total);
    if (load !== null && (found.load === null || load > found.load)) found = { load, name };
  }
  return found;
}

const SUMMED = ["total", "reserved", "capacity", "used", "held", "free", "providers"];

/** Add up the totals of trees, by class; `largest_free` is the greatest of all. */
export function summed(parts) {
  const sums = new Map();
  for (const { totals } of parts) {
    for (const [name, total] of Object.entries(totals)) {
      let sum = sums.get(name);
      if (!sum) {
        sum = { largest_free: 0, ...Object.fromEntries(SUMMED.map((member) => [member, 0])) };
        sums.set(name, sum);
      }
      for (const member of SUMMED) sum[member] += total[member] ?? 0;
      sum.largest_free = Math.max(sum.largest_free, total.largest_free);
    }
  }
  return Object.fromEntries([...sums].sort(([one], [other]) => (byImportance(one, other))));
}

const FIRST = ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB"];

/** Order classes: what every host has first, then by name. */
export function byImportance(one, other) {
  const place = (name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return place(one) - place(other) || one.localeCompare(other);
}

/** Capacity of an inventory record: (total − reserved) × allocation_ratio, a whole number. */
export const capacityOf = ({ total, reserved, allocation_ratio: ratio }) =>
  Math.max(0, Math.floor((total - reserved) * ratio));

/** Make totals of one inventory record and its usage, and what holds have of that. */
export function totalOf(inventory, used, held = 0) {
  const capacity = capacityOf(inventory);
  return {
    total: inventory.total, reserved: inventory.reserved, capacity, used, held,
    free: Math.max(0, capacity - used), ratio: inventory.allocation_ratio,
  };
}
