// SPDX-License-Identifier: Apache-2.0
/** Conditions of providers: why they, and all below them, get no claims (contract page 102). */

import { counted } from "./numbers.js";

const MOST_SHOWN = 6;
/* Different conditions of one tree that one line has; the page of the tree has all. */

/** A condition in words. */
export function conditionWords(key, { effect, until, reason, on_use: onUse, began }) {
  const use = onUse && (began ? "since it was used" : "once it is used");
  const terms = [effect, until && `until ${until}`, use].filter(Boolean);
  return `${key} (${terms.join(", ")})${reason ? `: ${reason}` : ""}`;
}

/** The providers that have conditions, kept current while things change. */
export class Conditions {
  /** @param {object[]} rows Providers with their conditions. */
  constructor(rows) {
    this.rows = new Map();
    for (const row of rows) this.take(row);
  }

  /** Take in a provider that was read, whether it has conditions or not. */
  take(row) {
    if (Object.keys(row.conditions).length) this.rows.set(row.uuid, row);
    else this.rows.delete(row.uuid);
  }

  /** Forget providers that were deleted. */
  drop(uuids) {
    for (const uuid of uuids) this.rows.delete(uuid);
  }

  /**
   * The trees in which a provider has a condition.
   *
   * @returns {Map<string, {keys: string[], words: string}>} By the root's uuid.
   */
  byTree() {
    const all = [...this.rows.values()].flatMap(({ name, root_provider_uuid: root, conditions }) =>
      Object.entries(conditions).map(([key, terms]) =>
        ({ root, name, key, words: conditionWords(key, terms) })));
    return new Map([...Map.groupBy(all, ({ root }) => root)].map(([root, own]) => [root, {
      keys: [...new Set(own.map(({ key }) => key))].sort(),
      words: inWords(Map.groupBy(own, ({ words }) => words)),
    }]));
  }
}

/** Write conditions with the provider that has each, or the number of providers. */
function inWords(byWords) {
  const lines = [...byWords].slice(0, MOST_SHOWN).map(([words, rows]) =>
    `${rows.length > 1 ? counted(rows.length, "provider") : rows[0].name}: ${words}`);
  const omitted = byWords.size - lines.length;
  return [...lines, ...omitted ? [`and ${counted(omitted, "more condition")}`] : []].join("; ");
}
