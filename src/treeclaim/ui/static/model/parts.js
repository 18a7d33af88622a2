// SPDX-License-Identifier: Apache-2.0
// Written by `make generated` from treeclaim/model/parts.py.
export const INCLUDE = Object.freeze(
  ["inventories", "usages", "traits", "aggregates", "attributes", "conditions"],
);
export const LISTED_PARTS = Object.freeze({
  traits: "trait",
  aggregates: "aggregate",
  attributes: "attribute",
});
