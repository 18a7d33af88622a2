// SPDX-License-Identifier: Apache-2.0
// Written by `make generated` from treeclaim/model/query/parameters.py.
/**
 * Parameters of a query. `ofGroup`: the name may have a suffix. `again`: it may come more than once.
 * `flavorItems`: the word before the suffix of an extra spec that is one item of a value.
 * `flavorNumbers`: an extra spec may end in `:N`, so that a flavor has several.
 */
export const PARAMETERS = Object.freeze({
  resources: {"ofGroup": true, "again": true, "flavorItems": "resources", "help": "how much of which classes"},
  required: {"ofGroup": true, "again": true, "flavorItems": "trait", "help": "traits that a provider has; ! for forbidden"},
  member_of: {"ofGroup": true, "again": true, "flavorItems": null, "help": "aggregates that a provider is in; ! for forbidden"},
  in_tree: {"ofGroup": true, "again": true, "flavorItems": null, "help": "uuid of a provider of the tree to use"},
  in_subtree: {"ofGroup": true, "again": true, "flavorItems": null, "help": "uuid of a provider: that one, or any below"},
  preferred: {"ofGroup": true, "again": false, "flavorItems": null, "help": "traits that a provider had better have; ! to avoid"},
  where: {"ofGroup": true, "again": true, "flavorItems": null, "help": "what attributes of a provider satisfy: mem_gib >= 80 and not ecc", "flavorNumbers": true},
  tolerates: {"ofGroup": true, "again": true, "flavorItems": null, "help": "keys of conditions that do not count"},
  limit: {"ofGroup": false, "again": false, "flavorItems": null, "help": "most candidates"},
  group_policy: {"ofGroup": false, "again": false, "flavorItems": null, "help": "whether groups may share a provider", "choices": ["none", "isolate"]},
  root_required: {"ofGroup": false, "again": true, "flavorItems": null, "help": "traits of the root; ! for forbidden"},
  same_subtree: {"ofGroup": false, "again": true, "flavorItems": null, "help": "suffixes of groups that must be below one provider: _CPU,_GPU"},
  root_member_of: {"ofGroup": false, "again": true, "flavorItems": null, "help": "aggregates of the root"},
  isolate: {"ofGroup": false, "again": true, "flavorItems": null, "help": "suffixes of groups that share no provider"},
  can_split: {"ofGroup": false, "again": true, "flavorItems": null, "help": "classes that several providers may give together"},
  split_policy: {"ofGroup": false, "again": false, "flavorItems": null, "help": "how an amount is divided over providers", "choices": ["pack", "even"]},
  order_by: {"ofGroup": false, "again": false, "flavorItems": null, "help": "pack, spread, preferred, near:_A:_B, keep:MIX:CLASS …"},
  root_in_tree: {"ofGroup": false, "again": false, "flavorItems": null, "help": "uuid of a host to use; ! to leave out"},
  from_holds: {"ofGroup": false, "again": false, "flavorItems": null, "help": "holds whose room counts as free"},
  root_where: {"ofGroup": false, "again": true, "flavorItems": null, "help": "what attributes of the root satisfy"},
  match: {"ofGroup": false, "again": true, "flavorItems": null, "help": "an attribute that groups have with the same value: numa_node:_GPU:_NIC", "flavorNumbers": true},
  distinct: {"ofGroup": false, "again": true, "flavorItems": null, "help": "an attribute that groups have with different values: rack:_A:_B", "flavorNumbers": true},
});
