// SPDX-License-Identifier: Apache-2.0
/**
 * Queries for candidates (contract pages 90, 97 and 98): read into groups that a form can show, and
 * written again. What the form does not know is kept as it is.
 */

import { PARAMETERS } from "./parameters.js";

const OF_GROUP = Object.keys(PARAMETERS).filter((name) => PARAMETERS[name].ofGroup).sort().reverse();
const GROUPED = new RegExp(`^(${OF_GROUP.join("|")})([0-9_].*)?$`, "s");

/** Parameters of a whole request that the form has fields for; those with `true` may come again. */
export const WHOLE = Object.freeze(Object.fromEntries(
  Object.entries(PARAMETERS).filter(([, { ofGroup }]) => !ofGroup).map(([name, { again }]) => [name, again])));

/** What a trait of a group may be. */
export const TraitRule = Object.freeze({
  REQUIRED: "required", FORBIDDEN: "forbidden", ANY: "any of", PREFERRED: "preferred",
});

/** Parameters that are read into the amounts and traits of a group. */
const READ = new Set(["resources", "required", "preferred"]);

/** Other conditions of a group. */
export const PLACES = Object.keys(PARAMETERS).filter((name) => PARAMETERS[name].ofGroup && !READ.has(name));

export const newGroup = (suffix) => ({ suffix, resources: [], traits: [], places: [] });

/**
 * Read a query string.
 *
 * @param {string} text Without the question mark; percent-encoded or plain.
 * @returns {{groups: object[], whole: [string, string][], others: [string, string][]}}
 */
export function readQuery(text) {
  const groups = new Map();
  const request = { groups: [], whole: [], others: [] };
  for (const [name, value] of pairsOf(text)) {
    const [, base, suffix = ""] = GROUPED.exec(name) ?? [];
    if (base) {
      if (!groups.has(suffix)) groups.set(suffix, newGroup(suffix));
      readInto(groups.get(suffix), base, value);
    } else if (Object.hasOwn(WHOLE, name)) {
      request.whole.push([name, value]);
    } else {
      request.others.push([name, value]);
    }
  }
  request.groups = [...groups.values()];
  return request;
}

function readInto(group, base, value) {
  if (base === "resources") {
    for (const item of value.split(",")) {
      const [name, amount = ""] = item.split(":");
      group.resources.push({ name, amount });
    }
  } else if (base === "required" && value.startsWith("in:")) {
    group.traits.push({ rule: TraitRule.ANY, name: value.slice(3) });
  } else if (base === "required") {
    for (const item of value.split(",")) {
      const isForbidden = item.startsWith("!");
      group.traits.push({ rule: isForbidden ? TraitRule.FORBIDDEN : TraitRule.REQUIRED, name: isForbidden ? item.slice(1) : item });
    }
  } else if (base === "preferred") {
    for (const item of value.split(",")) group.traits.push({ rule: TraitRule.PREFERRED, name: item });
  } else {
    group.places.push({ kind: base, value });
  }
}

/** Write a request as a query string; what is not filled in is left out. */
export function writeQuery({ groups, whole, others }) {
  const pairs = groups.flatMap(pairsOfGroup);
  for (const [name, value] of [...whole, ...others]) if (value.trim()) pairs.push([name, value.trim()]);
  return pairs.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join("&");
}

function pairsOfGroup({ suffix, resources, traits, places }) {
  const pairs = [];
  const amounts = resources.filter(({ name }) => name.trim()).map(({ name, amount }) => `${name.trim()}:${`${amount}`.trim()}`);
  if (amounts.length) pairs.push([`resources${suffix}`, amounts.join(",")]);
  const named = traits.map(({ rule, name }) => ({ rule, name: name.replaceAll(/\s/g, "") })).filter(({ name }) => name);
  const plain = named.filter(({ rule }) => rule === TraitRule.REQUIRED || rule === TraitRule.FORBIDDEN)
    .map(({ rule, name }) => (rule === TraitRule.FORBIDDEN ? `!${name}` : name));
  if (plain.length) pairs.push([`required${suffix}`, plain.join(",")]);
  for (const { rule, name } of named) if (rule === TraitRule.ANY) pairs.push([`required${suffix}`, `in:${name}`]);
  const preferred = named.filter(({ rule }) => rule === TraitRule.PREFERRED).map(({ name }) => name);
  if (preferred.length) pairs.push([`preferred${suffix}`, preferred.join(",")]);
  for (const { kind, value } of places) if (value.trim()) pairs.push([`${kind}${suffix}`, value.trim()]);
  return pairs;
}

/**
 * Tell whether a server would take a question: every suffix that is named belongs to a group, and a
 * group without resources is named in a list of same_subtree.
 */
export function isAskable({ groups, whole }) {
  const named = (wanted) => whole.filter(([name]) => name === wanted)
    .flatMap(([, value]) => value.split(",")).map((suffix) => suffix.replace(/^!/, ""));
  const subtrees = named("same_subtree");
  const suffixes = new Set(groups.map(({ suffix }) => suffix));
  return groups.some(({ resources }) => resources.length > 0)
    && [...subtrees, ...named("isolate")].every((suffix) => suffixes.has(suffix))
    && groups.every(({ suffix, resources }) => resources.length > 0 || subtrees.includes(suffix));
}

/** Read pairs of a query string as servers do: plus is a space. */
export const pairsOf = (text) => [...new URLSearchParams(text.trim().replace(/^\?/, ""))];

/** Encode what has a meaning in a query, and leave what people want to read. */
export const encoded = (text) => encodeURIComponent(text).replaceAll(/%(2C|3A|21|2A)/g, (code) => decodeURIComponent(code));

/** Return a suffix that no group has. */
export function freeSuffix(groups) {
  const taken = new Set(groups.map(({ suffix }) => suffix));
  if (!groups.length) return "";
  for (let number = 1; ; number += 1) if (!taken.has(`${number}`)) return `${number}`;
}
