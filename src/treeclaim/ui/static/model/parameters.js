// SPDX-License-Identifier: Apache-2.0
// Written by `make generated` from treeclaim/model/query/parameters.py.
/**
 * Parameters of a query. `ofGroup`: the name may have a suffix. `again`: it may come more than
 * once. `flavorNumbers`: an extra spec may end in `:N`, so that a flavor has several. What is
 * left out is false.
 */
export const PARAMETERS = Object.freeze({
  resources: {help: "how much of which classes", ofGroup: true, again: true},
  required: {help: "traits that a provider has; ! for forbidden", ofGroup: true, again: true},
  member_of: {help: "aggregates that a provider is in; ! for forbidden",
    ofGroup: true, again: true},
  in_tree: {help: "uuid of a provider of the tree to use", ofGroup: true, again: true},
  in_subtree: {help: "uuid of a provider: that one, or any below", ofGroup: true, again: true},
  preferred: {help: "traits that a provider had better have; ! to avoid", ofGroup: true},
  where: {help: "what attributes of a provider satisfy: mem_gib >= 80 and not ecc",
    ofGroup: true, again: true, flavorNumbers: true},
  tolerates: {help: "keys of conditions that do not count", ofGroup: true, again: true},
  limit: {help: "most candidates"},
  group_policy: {help: "whether groups may share a provider", choices: ["none", "isolate"]},
  root_required: {help: "traits of the root; ! for forbidden", again: true},
  same_subtree: {help: "suffixes of groups that must be below one provider: _CPU,_GPU",
    again: true},
  root_member_of: {help: "aggregates of the root", again: true},
  isolate: {help: "suffixes of groups that share no provider", again: true},
  can_split: {help: "classes that several providers may give together", again: true},
  split_policy: {help: "how an amount is divided over providers", choices: ["pack", "even"]},
  order_by: {help: "pack, spread, preferred, near:_A:_B, keep:MIX:CLASS …"},
  root_in_tree: {help: "uuid of a host to use; ! to leave out"},
  from_holds: {help: "holds whose room counts as free"},
  root_where: {help: "what attributes of the root satisfy", again: true},
  match: {help: "an attribute that groups have with the same value: numa_node:_GPU:_NIC",
    again: true, flavorNumbers: true},
  distinct: {help: "an attribute that groups have with different values: rack:_A:_B",
    again: true, flavorNumbers: true},
});
