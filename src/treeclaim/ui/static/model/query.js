// SPDX-License-Identifier: Apache-2.0
/**
 * Queries for candidates (contract pages 90, 97 and 98): read into groups that a form can show, and
 * written again. Parameters that the form does not know are kept as they are.
 */

import { PARAMETERS } from "./parameters.js";

const namesOf = (isWanted) => Object.keys(PARAMETERS).filter((name) => isWanted(PARAMETERS[name]));
const OF_GROUP = namesOf(({ ofGroup }) => ofGroup);
const GROUPED = new RegExp(`^(${OF_GROUP.toSorted().reverse().join("|")})([0-9_].*)?$`, "s");

/** Parameters of a whole request. */
export const WHOLE = Object.freeze(namesOf(({ ofGroup }) => !ofGroup));

/** The modes of a trait in a group. */
export const TraitRule = Object.freeze({
  REQUIRED: "required", FORBIDDEN: "forbidden", ANY: "any of", PREFERRED: "preferred",
});

/** Parameters of a group besides its amounts and traits. */
export const PLACES = Object.freeze(
  OF_GROUP.filter((name) => !["resources", "required", "preferred"].includes(name)));

export const newGroup = (suffix) => ({ suffix, resources: [], traits: [], places: [] });

/**
 * Read a query string.
 *
 * @param {string} text Without the question mark; percent-encoded or plain.
 * @returns {{groups: object[], whole: [string, string][], others: [string, string][]}} Groups have
 *   `suffix`, `resources` (name, amount), `traits` (rule, name) and `places` (kind, value).
 */
export function readQuery(text) {
  const groups = new Map();
  const whole = [];
  const others = [];
  for (const [name, value] of pairsOf(text)) {
    const [, base, suffix = ""] = GROUPED.exec(name) ?? [];
    if (base) {
      if (!groups.has(suffix)) groups.set(suffix, newGroup(suffix));
      readInto(groups.get(suffix), base, value);
    } else {
      (WHOLE.includes(name) ? whole : others).push([name, value]);
    }
  }
  return { groups: [...groups.values()], whole, others };
}

function readInto({ resources, traits, places }, base, value) {
  const items = value.split(",");
  if (base === "resources") {
    resources.push(...items.map((item) => {
      const [name, amount = ""] = item.split(":");
      return { name, amount };
    }));
  } else if (base === "required" && value.startsWith("in:")) {
    traits.push({ rule: TraitRule.ANY, name: value.slice(3) });
  } else if (base === "required") {
    traits.push(...items.map((item) => (item.startsWith("!")
      ? { rule: TraitRule.FORBIDDEN, name: item.slice(1) }
      : { rule: TraitRule.REQUIRED, name: item })));
  } else if (base === "preferred") {
    traits.push(...items.map((name) => ({ rule: TraitRule.PREFERRED, name })));
  } else {
    places.push({ kind: base, value });
  }
}

/** Write a request as a query string; what is not filled in is left out. */
export const writeQuery = ({ groups, whole, others }) =>
  joined([...groups.flatMap(pairsOfGroup), ...whole, ...others]);

function pairsOfGroup({ suffix, resources, traits, places }) {
  const named = (...rules) => traits.filter(({ rule }) => rules.includes(rule))
    .map(({ rule, name }) => ({ rule, name: name.replaceAll(/\s/g, "") }))
    .filter(({ name }) => name);
  const required = named(TraitRule.REQUIRED, TraitRule.FORBIDDEN)
    .map(({ rule, name }) => (rule === TraitRule.FORBIDDEN ? `!${name}` : name));
  const amounts = resources.filter(({ name }) => name.trim())
    .map(({ name, amount }) => `${name.trim()}:${`${amount}`.trim()}`);
  return [
    ["resources", amounts.join(",")],
    ["required", required.join(",")],
    ...named(TraitRule.ANY).map(({ name }) => ["required", `in:${name}`]),
    ["preferred", named(TraitRule.PREFERRED).map(({ name }) => name).join(",")],
    ...places.map(({ kind, value }) => [kind, value]),
  ].map(([name, value]) => [`${name}${suffix}`, value]);
}

/** Read pairs of a query string as servers do: plus is a space. */
export const pairsOf = (text) => [...new URLSearchParams(text.trim().replace(/^\?/, ""))];

/** Write pairs as a query string; pairs without a value are left out. */
export const joined = (pairs) => pairs.filter(([, value]) => value.trim())
  .map(([name, value]) => `${encoded(name)}=${encoded(value.trim())}`).join("&");

/** Encode what has a meaning in a query, and leave what people want to read. */
export const encoded = (text) =>
  encodeURIComponent(text).replaceAll(/%(2C|3A|21|2A)/g, (code) => decodeURIComponent(code));

/** Return a suffix that no group has. */
export function freeSuffix(groups) {
  const taken = new Set(groups.map(({ suffix }) => suffix));
  let number = groups.length ? 1 : "";
  while (taken.has(`${number}`)) number += 1;
  return `${number}`;
}
