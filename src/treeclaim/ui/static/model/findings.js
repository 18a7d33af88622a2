// SPDX-License-Identifier: Apache-2.0
/** What an audit finds, in words (contract page 99, section 5). */

export const KINDS = {
  over_capacity: "Usage above the capacity",
  against_units: "Allocations that min_unit, max_unit or step_size no longer allow",
  without_inventory: "Allocations of a class that the provider lacks",
  without_provider: "Rows of a provider that does not exist",
  without_consumer: "Consumers without a record",
  empty_consumer: "Records of consumers without allocations",
  broken_root: "Wrong root providers",
  broken_parent: "Missing parents, or cycles of parents",
  in_many_trees: "Consumers in several trees: unfinished moves",
  same_host: "Hosts that exist twice under similar names",
  unused_aggregate: "Aggregates without members",
  unused_trait: "Custom traits that no provider has",
  unused_class: "Custom resource classes that are not used",
  empty_tree: "Trees without inventory",
  expired_hold: "Holds that still exist after their end",
  broken_hold: "Terms or draws of a consumer that is not a hold",
  broken_draw: "More drawn from holds than the consumer has",
  must_leave: "Consumers that must leave because of a condition",
  orphaned: "Consumers that no longer exist in the cloud",
};

/** Kinds that `treeclaim audit --repair` can repair. */
export const REPAIRABLE = new Set([
  "without_provider", "without_consumer", "empty_consumer", "broken_root", "unused_aggregate",
  "expired_hold", "broken_hold", "broken_draw", "orphaned",
]);
