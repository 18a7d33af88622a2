// SPDX-License-Identifier: Apache-2.0
/** What an audit finds, in words (contract page 99, section 5). */

export const KINDS = {
  over_capacity: "More is used than there is",
  against_units: "Allocations that min_unit, max_unit or step_size forbid by now",
  without_inventory: "Allocations of a class that the provider does not have",
  without_provider: "Rows of a provider that does not exist",
  without_consumer: "Allocations whose consumer has no record",
  empty_consumer: "Consumers that hold nothing",
  broken_root: "Roots that are not the top of the parents",
  broken_parent: "Parents that do not exist, or a circle",
  in_many_trees: "Consumers in several trees: unfinished moves",
  same_host: "Hosts that seem to have changed their name",
  unused_aggregate: "Aggregates that nothing refers to",
  unused_trait: "Custom traits that nothing has",
  unused_class: "Custom resource classes that nothing has",
  empty_tree: "Trees without inventory",
  expired_hold: "Holds that are there after their end",
  broken_hold: "Terms or draws of what is no hold",
  broken_draw: "More drawn from holds than the consumer has",
  must_leave: "Consumers where a condition says that all are to leave",
  orphaned: "Consumers that live no more",
};

/** Kinds that `treeclaim audit --repair` can mend without a guess. */
export const REPAIRABLE = new Set([
  "without_provider", "without_consumer", "empty_consumer", "broken_root", "unused_aggregate",
  "expired_hold", "broken_hold", "broken_draw", "orphaned",
]);
