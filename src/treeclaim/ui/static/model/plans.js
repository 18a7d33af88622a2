// SPDX-License-Identifier: Apache-2.0
/** Plans of moves: how they are asked for, and what the cloud is after them (contract page 101, section 5). */

import { AsIfError, hostNamed, listed } from "./as_if.js";
import { own } from "./texts.js";

/** Goals, by the word in the address: what they are called, and the parameter without which there is none. */
export const GOALS = Object.freeze({
  empty: { title: "Empty hosts", needs: "hosts" },
  aggregate: { title: "Empty an aggregate", needs: "aggregate" },
  leave: { title: "Empty where a condition says leave", needs: "goal" },
  fit: { title: "Make room", needs: "query" },
  keep: { title: "Defragment", needs: "mix" },
});

/** Why a consumer is left where it is. */
export const REASONS = Object.freeze({
  not_movable: "is not movable",
  no_request: "has no valid request",
  no_room: "has no room elsewhere",
  rule: "is kept back by a rule",
  max_moves: "exceeds the maximum of moves",
});

/** Tell whether an address asks for a plan. */
export const isAsked = (choice) => Boolean(own(choice, own(GOALS, choice.goal ?? "")?.needs ?? ""));

/**
 * Make the body of a call.
 *
 * @throws {AsIfError} Where a host is none, or a number.
 */
export async function bodyOf(api, choice, supposed, signal) {
  return {
    goal: await goalOf(api, choice, supposed, signal),
    max_moves: numberOf(choice.moves ?? "100"),
    both_at_once: choice.live !== "no",
    explain: true,
    ...choice.types && { movable: { consumer_types: listed(choice.types) } },
    ...supposed && { given: supposed.given },
  };
}

async function goalOf(api, choice, supposed, signal) {
  if (choice.goal === "aggregate") return { empty_aggregate: choice.aggregate };
  if (choice.goal === "leave") return { leave: true };
  if (choice.goal === "fit") return { fit: { query: choice.query, amount: numberOf(choice.amount ?? "1") } };
  if (choice.goal === "keep") return { keep: { mix: choice.mix, empty_trees: choice.trees === "yes" } };
  const empty = [];
  for (const text of choice.hosts.split(",").map((one) => one.trim()).filter(Boolean)) {
    const made = supposed?.made.find(({ name, uuid }) => name === text || uuid === text);
    empty.push((made ?? await hostNamed(api, text, signal)).root_provider_uuid);
  }
  return { empty: [...new Set(empty)] };
}

function numberOf(text) {
  if (!/^\d{1,9}$/.test(text)) throw new AsIfError(`'${text}' is no number.`);
  return Number(text);
}

/** Uuids of all providers that some moves take something from, or give something to. */
export const providersIn = (moves) => [...new Set(moves.flatMap(({ from, to }) => [...Object.keys(from), ...Object.keys(to)]))];

/**
 * The trees after some moves.
 *
 * @param {object[]} trees With `uuid` and `totals`.
 * @param {Map<string, object>} providers Of which tree each provider is, by uuid.
 * @returns {{after: object[], touched: Set<string>}} The trees, and the uuids of those that are different.
 */
export function carriedOut(trees, moves, providers) {
  const differences = new Map();
  const add = (allocations, sign) => {
    for (const [uuid, { resources }] of Object.entries(allocations)) {
      const root = providers.get(uuid)?.root_provider_uuid ?? uuid;
      if (!differences.has(root)) differences.set(root, new Map());
      const sums = differences.get(root);
      for (const [name, amount] of Object.entries(resources)) sums.set(name, (sums.get(name) ?? 0) + sign * amount);
    }
  };
  for (const { from, to } of moves) {
    add(from, -1);
    add(to, 1);
  }
  const after = trees.map((tree) => {
    const sums = differences.get(tree.uuid);
    if (!sums) return tree;
    const totals = Object.entries(tree.totals).map(([name, total]) => [name, { ...total, used: total.used + (sums.get(name) ?? 0) }]);
    return { ...tree, totals: Object.fromEntries(totals) };
  });
  return { after, touched: new Set(differences.keys()) };
}
