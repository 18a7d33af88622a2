// SPDX-License-Identifier: Apache-2.0
/** Why a tree is no candidate, in words (contract page 97, section 3). */

import { aggregateName } from "./numbers.js";
import { own } from "./texts.js";

const list = (value = "what is asked for") => [value].flat().join(", ");

const traitsOf = ({ trait, traits }) => list(trait ?? traits);

/** Aggregates by their names, and in full by uuid without a name. */
const aggregatesOf = ({ aggregates, aggregate }, names) =>
  list([aggregates ?? aggregate ?? []].flat()
    .map((uuid) => (names.has(uuid.toLowerCase()) ? aggregateName(names, uuid) : uuid)));

const WORDS = {
  no_inventory: ({ resource_class: name = "the class" }) => `has no inventory of ${name}`,
  amount_unit: ({ resource_class: name = "", requested = "" }) =>
    `${requested} ${name} is against min_unit, max_unit or step_size`,
  capacity: ({ resource_class: name = "", requested = "" }) =>
    `has no room for ${requested} ${name}`,
  condition: ({ key = "a condition", reason }) =>
    `gives nothing new, because of ${key}${reason ? `: ${reason}` : ""}`,
  trait_missing: (detail) => `lacks ${traitsOf(detail)}`,
  trait_forbidden: (detail) => `has ${traitsOf(detail)}, which is forbidden`,
  not_member_of: (detail, names) => `is not in ${aggregatesOf(detail, names)}`,
  forbidden_member_of: (detail, names) =>
    `is in ${aggregatesOf(detail, names)}, which is forbidden`,
  not_in_tree: () => "is not in the tree that is asked for",
  not_in_subtree: () => "is not in the subtree that is asked for",
  root_trait: (detail) => `the root has not the traits that are asked for${
    detail.trait || detail.traits ? `: ${traitsOf(detail)}` : ""}`,
  root_member_of: () => "the root is not in the aggregates that are asked for",
  where: ({ expression = "what is asked of its attributes" }) => `does not satisfy ${expression}`,
  root_where: ({ expression = "what is asked of its attributes" }) =>
    `the root does not satisfy ${expression}`,
  same_subtree: ({ groups }) => `${list(groups)} have no subtree in common`,
  isolate: ({ groups }) => `${list(groups)} would share a provider`,
  match: ({ attribute = "the attribute", groups }) =>
    `${list(groups)} have no value of ${attribute} in common`,
  distinct: ({ attribute = "the attribute", groups }) =>
    `${list(groups)} have no different values of ${attribute}`,
  combined_capacity: () => "each group fits alone, together they do not",
  no_common_tree: () => "every group has providers, but no tree serves them all",
  rule: ({ rule }) => `rule ${rule} is broken`,
};

/**
 * Return a reason in words; an unknown reason is shown as it came.
 *
 * @param {Map<string, string>} names Of aggregates.
 */
export function sentence(reason, detail, names) {
  const words = own(WORDS, reason);
  if (!words) return `${reason} ${JSON.stringify(detail)}`;
  const members = Object.entries(detail ?? {}).filter(([, value]) => value !== null);
  return words(Object.fromEntries(members), names).replaceAll(/\s+/g, " ");
}
