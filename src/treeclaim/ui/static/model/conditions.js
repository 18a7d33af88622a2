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

/**
 * The trees in which a provider has a condition.
 *
 * @param {object[]} rows Providers with their conditions.
 * @returns {Map<string, {keys: string[], words: string}>} By the root's uuid.
 */
export function conditionsByTree(rows) {
  const all = rows.flatMap(({ name, root_provider_uuid: root, conditions }) =>
    Object.entries(conditions).map(([key, terms]) =>
      ({ root, name, key, words: conditionWords(key, terms) })));
  return new Map([...Map.groupBy(all, ({ root }) => root)].map(([root, own]) => [root, {
    keys: [...new Set(own.map(({ key }) => key))].sort(),
    words: inWords(Map.groupBy(own, ({ words }) => words)),
  }]));
}

/** Write conditions with the provider that has each, or the number of providers. */
function inWords(byWords) {
  const lines = [...byWords].slice(0, MOST_SHOWN).map(([words, rows]) =>
    `${rows.length > 1 ? counted(rows.length, "provider") : rows[0].name}: ${words}`);
  const omitted = byWords.size - lines.length;
  return [...lines, ...omitted ? [`and ${counted(omitted, "more condition")}`] : []].join("; ");
}
