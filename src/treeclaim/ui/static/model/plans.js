// SPDX-License-Identifier: Apache-2.0
/** Plans of moves: their requests, and the trees after them (contract page 101, section 5). */

import { AsIfError, hostNamed, listed } from "./as_if.js";
import { own } from "./texts.js";

/** Goals by the word in the address: their titles, and the parameter that each requires. */
export const GOALS = Object.freeze({
  empty: { title: "Empty hosts", needs: "hosts" },
  aggregate: { title: "Empty an aggregate", needs: "aggregate" },
  leave: { title: "Empty where a condition says leave", needs: "goal" },
  fit: { title: "Make room", needs: "query" },
  keep: { title: "Defragment", needs: "mix" },
});

/** Why a consumer stays where it is. */
export const REASONS = Object.freeze({
  not_movable: "is not movable",
  no_request: "has no valid request",
  no_room: "has no room elsewhere",
  rule: "is kept back by a rule",
  max_moves: "exceeds the maximum of moves",
});

/** Whether an address requests a plan. */
export const isComplete = (choice) =>
  Boolean(own(choice, own(GOALS, choice.goal ?? "")?.needs ?? ""));

/**
 * Make the body of a call.
 *
 * @param {object} choice Parameters of the address.
 * @param {object|null} assumptions As `givenBy` returns them.
 * @throws {AsIfError} If a host does not exist, or a number is invalid.
 */
export async function bodyOf(api, choice, assumptions, signal) {
  return {
    goal: await goalOf(api, choice, assumptions, signal),
    max_moves: numberOf(choice.moves ?? "100"),
    both_at_once: choice.live !== "no",
    explain: true,
    ...choice.types && { movable: { consumer_types: listed(choice.types) } },
    ...assumptions && { given: assumptions.given },
  };
}

async function goalOf(api, choice, assumptions, signal) {
  const { goal, aggregate, query, amount = "1", mix, trees, hosts } = choice;
  if (goal === "aggregate") return { empty_aggregate: aggregate };
  if (goal === "leave") return { leave: true };
  if (goal === "fit") return { fit: { query, amount: numberOf(amount) } };
  if (goal === "keep") return { keep: { mix, empty_trees: trees === "yes" } };
  const roots = [];
  for (const text of hosts.split(",").map((host) => host.trim()).filter(Boolean)) {
    const made = assumptions?.made.find(({ name, uuid }) => name === text || uuid === text);
    roots.push((made ?? await hostNamed(api, text, signal)).root_provider_uuid);
  }
  return { empty: [...new Set(roots)] };
}

function numberOf(text) {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new AsIfError(`'${text}' is no number.`);
}

/** Uuids of all providers that some moves take something from, or give something to. */
export const providersIn = (moves) =>
  [...new Set(moves.flatMap(({ from, to }) => Object.keys({ ...from, ...to })))];

/**
 * The trees after some moves.
 *
 * @param {object[]} trees With `uuid` and `totals`.
 * @param {Map<string, object>} providers Rows by uuid, for the tree of each provider.
 * @returns {{after: object[], touched: Set<string>}} The trees, and the uuids of those that differ.
 */
export function carriedOut(trees, moves, providers) {
  const after = new Map(trees.map((tree) => [tree.uuid, tree]));
  const touched = new Set();
  const add = (allocations, sign) => {
    for (const [uuid, { resources }] of Object.entries(allocations)) {
      const root = providers.get(uuid)?.root_provider_uuid ?? uuid;
      touched.add(root);
      const tree = after.get(root);
      const totals = Object.entries(tree?.totals ?? {}).map(([name, total]) =>
        [name, { ...total, used: total.used + sign * (own(resources, name) ?? 0) }]);
      if (tree) after.set(root, { ...tree, totals: Object.fromEntries(totals) });
    }
  };
  for (const { from, to } of moves) {
    add(from, -1);
    add(to, 1);
  }
  return { after: [...after.values()], touched };
}
