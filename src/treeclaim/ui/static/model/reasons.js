// SPDX-License-Identifier: Apache-2.0
/** Why a tree is no candidate, in words (contract page 97, section 3). */

import { aggregateName } from "./numbers.js";
import { own } from "./texts.js";

const WORDS = {
  no_inventory: ({ resource_class: name }) => `has no inventory of ${name ?? "the class"}`,
  amount_unit: ({ resource_class: name, requested }) => `${requested ?? ""} ${name ?? ""} is against min_unit, max_unit or step_size`,
  capacity: ({ resource_class: name, requested }) => `has no room for ${requested ?? ""} ${name ?? ""}`,
  condition: ({ key, reason }) => `gives nothing new, because of ${key ?? "a condition"}${reason ? `: ${reason}` : ""}`,
  trait_missing: ({ trait, traits }) => `lacks ${listed(trait ?? traits)}`,
  trait_forbidden: ({ trait, traits }) => `has ${listed(trait ?? traits)}, which is forbidden`,
  not_member_of: (detail, names) => `is not in ${listedAggregates(detail, names)}`,
  forbidden_member_of: (detail, names) => `is in ${listedAggregates(detail, names)}, which is forbidden`,
  not_in_tree: () => "is not in the tree that is asked for",
  not_in_subtree: () => "is not in the subtree that is asked for",
  root_trait: ({ trait, traits }) => `the root has not the traits that are asked for${trait || traits ? `: ${listed(trait ?? traits)}` : ""}`,
  root_member_of: () => "the root is not in the aggregates that are asked for",
  where: ({ expression }) => `does not satisfy ${expression ?? "what is asked of its attributes"}`,
  root_where: ({ expression }) => `the root does not satisfy ${expression ?? "what is asked of its attributes"}`,
  same_subtree: ({ groups }) => `${listed(groups)} have no subtree in common`,
  isolate: ({ groups }) => `${listed(groups)} would share a provider`,
  match: ({ attribute, groups }) => `${listed(groups)} have no value of ${attribute ?? "the attribute"} in common`,
  distinct: ({ attribute, groups }) => `${listed(groups)} have no different values of ${attribute ?? "the attribute"}`,
  combined_capacity: () => "each group fits alone, together they do not",
  no_common_tree: () => "every group has providers, but no tree serves them all",
  rule: ({ rule }) => `rule ${rule} is broken`,
};

const listed = (value) => (value === undefined ? "what is asked for" : [value].flat().join(", "));

/** Aggregates by their names, and in full by uuid where they have none. */
const listedAggregates = ({ aggregates, aggregate }, names) =>
  listed([aggregates ?? aggregate ?? []].flat().map((uuid) => (names.has(uuid.toLowerCase()) ? aggregateName(names, uuid) : uuid)));

/**
 * Say a reason; one that is not known is shown as it came.
 *
 * @param {Map<string, string>} names Of aggregates.
 */
export function sentence(reason, detail, names) {
  const words = own(WORDS, reason);
  if (words) return words(detail ?? {}, names).replaceAll(/\s+/g, " ");
  return `${reason} ${JSON.stringify(detail)}`;
}

/** Name a group. */
export const groupName = (suffix) => (suffix === null || suffix === undefined ? "" : suffix === "" ? "unsuffixed group" : `group ${suffix}`);
