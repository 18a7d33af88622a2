// SPDX-License-Identifier: Apache-2.0
/** Trees of resource providers. */

const BY_NAME = new Intl.Collator("en", { numeric: true });

/**
 * Put rows of providers into trees.
 *
 * @param {object[]} rows In any order; a row without its parent becomes a root.
 * @returns {{provider: object, children: object[]}[]} The tops, children by name.
 */
export function grown(rows) {
  const nodes = new Map(rows.map((provider) => [provider.uuid, { provider, children: [] }]));
  const tops = [];
  for (const node of nodes.values()) {
    const parent = nodes.get(node.provider.parent_provider_uuid);
    (parent ? parent.children : tops).push(node);
  }
  for (const { children } of nodes.values()) children.sort(inOrder);
  return tops.sort(inOrder);
}

const inOrder = (one, other) => BY_NAME.compare(one.provider.name, other.provider.name);

/**
 * Leave out the parts of a tree in which no provider is wanted.
 *
 * @returns {object|null} The tree, and in `omitted` the number of providers that were left out.
 */
export function pruned(top, isWanted) {
  const prune = ({ provider, children }) => {
    const kept = children.map(prune).filter(Boolean);
    return kept.length || isWanted(provider) ? { provider, children: kept } : null;
  };
  const tree = prune(top);
  return tree && { ...tree, omitted: sizeOf(top) - sizeOf(tree) };
}

const sizeOf = ({ children }) => children.reduce((sum, child) => sum + sizeOf(child), 1);

/** Write amounts by class as words. */
export const amounts = (resources) => Object.entries(resources)
  .map(([name, amount]) => `${amount.toLocaleString("en")} ${name}`).join(", ");

/** The part of a provider's name that its parent's lacks: `numa0` of `host-1_numa0`. */
export function shortName(name, parent) {
  if (!parent || !name.startsWith(parent) || name === parent) return name;
  return name.slice(parent.length).replace(/^[\s_.:/-]+/, "") || name;
}
