// SPDX-License-Identifier: Apache-2.0
/** Parts of a provider, written by `make generated` from treeclaim/model/parts.py. */

/** What may be included in a list of providers. */
export const INCLUDE = Object.freeze(["inventories", "usages", "traits", "aggregates", "attributes", "conditions"]);

/** The parts but the inventories, by name: the word for one of what a provider has. */
export const LISTED_PARTS = Object.freeze({
  traits: "trait",
  aggregates: "aggregate",
  attributes: "attribute",
});
