// SPDX-License-Identifier: Apache-2.0
/** The operations that the pages use (contract pages 97 to 102). */

import { ifAllowed } from "./errors.js";
import { INCLUDE } from "../model/parts.js";

const MOST = 10_000;
/* Entries of a page that the server returns at most. */

const SHARING = "MISC_SHARES_VIA_AGGREGATE";
/* The trait of providers that share with their aggregates. */

const AT_ONCE = 200;
/* Uuids in one address; servers and proxies refuse much longer addresses. */

/**
 * Totals of the cloud, and those of its parts if the query has `by`.
 *
 * @param {object|null} given Assumptions under which they are summed.
 * @returns {Promise<{totals: object, parts: object[], cursor: string}>}
 */
export async function totals(api, query, signal, given = null) {
  const limit = query.by ? MOST : null;
  const body = given && { given };
  const pages = await api.pages("/treeclaim/totals", { ...query, limit }, signal, body);
  return { ...pages[0], parts: pages.flatMap(({ parts = [] }) => parts) };
}

/** Totals of the trees with these roots. */
export const totalsOfTrees = (api, roots, signal) => inChunks(roots, async (some) =>
  (await totals(api, { by: "tree", in_tree: some }, signal)).parts);

/** Providers that pass the filters of a query. */
export const providers = (api, query, signal) =>
  api.list("/treeclaim/providers", { ...query, limit: MOST }, "providers", signal);

export const providersByUuid = (api, uuids, signal, query = {}) =>
  inChunks(uuids, (some) => providers(api, { uuid: some, ...query }, signal));

/** All providers of the trees with these roots, with some of their parts. */
export const providersOfTrees = (api, roots, parts, signal) =>
  inChunks(roots, (some) => providers(api, { in_tree: some, ...including(parts) }, signal));

/** The query that includes parts of providers. */
export const including = (parts) => ({ include: parts.join(",") || null });

/** Names of aggregates by uuid; none if the policy or the server has none to show. */
export async function aggregateNames(api, signal) {
  const path = "/treeclaim/aggregates/names";
  const pages = await ifAllowed(api.pages(path, { limit: MOST }, signal), []);
  return new Map(pages.flatMap(({ names }) => Object.entries(names)));
}

/** Sharing providers that are in one of some aggregates. */
export async function sharingProviders(api, aggregates, signal) {
  const query = { required: SHARING, member_of: `in:${aggregates.join(",")}` };
  return aggregates.length ? providers(api, { ...query, ...including(INCLUDE) }, signal) : [];
}

/** One page of consumers, with all that they hold. */
export const consumers = (api, query, signal) => api.get("/treeclaim/allocations", query, signal);

/** Holds in a tree: for each provider and class, the project, amount, end and note of each hold. */
export async function heldInTree(api, root, signal) {
  const holds = await api.list("/treeclaim/holds", { in_tree: root }, "holds", signal);
  const held = holds.flatMap(({ uuid, project_id: project, allocations, hold: { until, note } }) =>
    Object.entries(allocations).flatMap(([provider, { resources }]) =>
      Object.entries(resources).map(([name, amount]) =>
        ({ provider, name, uuid, project, amount, until, note }))));
  return new Map([...Map.groupBy(held, ({ provider }) => provider)]
    .map(([provider, parts]) => [provider, Map.groupBy(parts, ({ name }) => name)]));
}

/** Candidates of a query; under assumptions, `given` of the answer counts what was placed first. */
export const candidates = (api, query, given, signal) => (given
  ? api.post("/treeclaim/candidates", { alternatives: [query], given }, signal)
  : api.get(`/allocation_candidates?${query}`, {}, signal));

/**
 * Why a query has the candidates that it has.
 *
 * @param {object|null} given Assumptions; a dry run of a placement explains them.
 * @returns {Promise<object|null>} Null if the query has candidates under the assumptions.
 */
export async function explanation(api, query, given, signal) {
  if (!given) {
    const pairs = query.split("&").filter((pair) => !pair.startsWith("limit="));
    return api.get(`/allocation_candidates/explain?${pairs.join("&")}`, {}, signal);
  }
  const request = {
    alternatives: [query], consumers: [NOBODY], project_id: "nobody", user_id: "nobody",
    consumer_type: "INSTANCE",
  };
  const body = { requests: [request], partial: true, dry_run: true, explain: true, given };
  return (await api.post("/treeclaim/placements", body, signal)).explanation ?? null;
}

const NOBODY = "00000000-0000-4000-8000-000000000000";
/* The consumer of a dry run. */

/** Names of the mixes; none if this server or the policy has none to show. */
export const mixNames = async (api, signal) =>
  Object.keys((await ifAllowed(api.get("/treeclaim/mixes", {}, signal), { mixes: {} })).mixes);

/** Names of all traits, and of all resource classes, as far as the policy shows them. */
export async function names(api, signal) {
  const read = (path) => ifAllowed(api.get(path, {}, signal), { traits: [], resource_classes: [] });
  const [{ traits }, { resource_classes: classes }] =
    await Promise.all([read("/traits"), read("/resource_classes")]);
  return { traits, classes: classes.map(({ name }) => name) };
}

/** Call a function with the filter for each few of many uuids, and join the lists. */
async function inChunks(uuids, read) {
  const entries = [];
  for (let begin = 0; begin < uuids.length; begin += AT_ONCE) {
    for (const entry of await read(`in:${uuids.slice(begin, begin + AT_ONCE).join(",")}`)) {
      entries.push(entry);
    }
  }
  return entries;
}
