// SPDX-License-Identifier: Apache-2.0
/** Why providers, and all below them, give nothing new (contract page 102, section 3). */

import { counted } from "./numbers.js";

const MOST_TOLD = 6;
/* Different conditions of one tree that are told in one line; the page of the tree has all. */

/** A condition in words. */
export function conditionWords(key, { effect, until, reason, on_use: onUse, began }) {
  const terms = [effect, until && `until ${until}`, onUse && (began ? "since it was used" : "once it is used")].filter(Boolean);
  return `${key} (${terms.join(", ")})${reason ? `: ${reason}` : ""}`;
}

/** The providers that have conditions, kept current while things change. */
export class Conditions {
  constructor() {
    this.found = new Map();
  }

  /** Take in what was read of providers, whether they have any or not. */
  take(rows) {
    for (const { uuid, name, root_provider_uuid: root, conditions } of rows) {
      if (Object.keys(conditions).length) this.found.set(uuid, { name, root, conditions });
      else this.found.delete(uuid);
    }
  }

  /** Forget providers that are gone. */
  drop(uuids) {
    for (const uuid of uuids) this.found.delete(uuid);
  }

  /**
   * The trees in which a provider has a condition.
   *
   * @returns {Map<string, {keys: string[], words: string}>} By the root's uuid: the keys, and all in words.
   */
  byTree() {
    const places = new Map();
    for (const { name, root, conditions } of this.found.values()) {
      if (!places.has(root)) places.set(root, { keys: new Set(), where: new Map() });
      const { keys, where } = places.get(root);
      for (const [key, terms] of Object.entries(conditions)) {
        const words = conditionWords(key, terms);
        keys.add(key);
        if (!where.has(words)) where.set(words, []);
        where.get(words).push(name);
      }
    }
    return new Map([...places].map(([root, { keys, where }]) => [root, { keys: [...keys].sort(), words: inWords(where) }]));
  }
}

function inWords(where) {
  const told = [...where].slice(0, MOST_TOLD)
    .map(([words, names]) => `${names.length > 1 ? counted(names.length, "provider") : names[0]}: ${words}`);
  if (where.size > MOST_TOLD) told.push(`and ${counted(where.size - MOST_TOLD, "more condition")}`);
  return told.join("; ");
}
