// SPDX-License-Identifier: Apache-2.0
/** The operations that the pages use (contract pages 97 to 102). */

import { asQuery, nextOf } from "./client.js";
import { Trouble } from "./errors.js";
import { INCLUDE } from "../model/parts.js";
import { SHARING } from "../model/trees.js";

const MOST = 10_000;
/* Entries of a page that the server gives at most. */

const MOST_NAMES = 1_000_000;
/* Names that are read; a server that leads in a circle has no more. */

const AT_ONCE = 200;
/* Uuids in one address; servers and proxies refuse much longer ones. */

/** Totals of the cloud, and of each tree, as it is or with what is given; pages are read up to the last one. */
export async function totalsByTree(api, query, signal, given = null) {
  const { first, entries } = await api.all(
    "/treeclaim/totals", { by: "tree", limit: MOST, ...query }, "parts", signal, given && { given },
  );
  return { totals: first.totals, parts: entries, cursor: first.cursor };
}

/** Totals of some trees, by the uuids of their roots. */
export async function totalsOfTrees(api, roots, signal) {
  const found = [];
  for (const some of chunks(roots)) {
    found.push(...(await totalsByTree(api, { in_tree: among(some) }, signal)).parts);
  }
  return found;
}

/** Totals of each aggregate. */
export async function totalsByAggregate(api, signal) {
  const query = { by: "aggregate", limit: MOST };
  return (await api.all("/treeclaim/totals", query, "parts", signal)).entries;
}

/** Aggregates of all roots, as a map from the root's uuid to a list. */
export async function aggregatesOfRoots(api, signal) {
  const query = { include: "aggregates", limit: MOST };
  const { entries } = await api.all("/treeclaim/providers", query, "providers", signal);
  return new Map(entries.filter(isRoot).map(({ uuid, aggregates }) => [uuid, aggregates]));
}

/** All providers that have conditions, with these; the server has no filter for them, so it is asked for all, in pages. */
export async function conditioned(api, signal) {
  const found = [];
  let marker = null;
  do {
    const page = await api.get("/treeclaim/providers", { include: "conditions", limit: MOST, marker }, signal);
    found.push(...page.providers.filter(({ conditions }) => Object.keys(conditions).length));
    marker = nextOf(page);
  } while (marker);
  return found;
}

/**
 * Names of aggregates.
 *
 * @returns {Promise<Map<string, string>>} By uuid; none where the policy, or the server, has none to show.
 */
export async function aggregateNames(api, signal) {
  const found = new Map();
  let marker = null;
  try {
    do {
      const page = await api.get("/treeclaim/aggregates/names", { limit: MOST, marker }, signal);
      for (const [uuid, name] of Object.entries(page.names)) found.set(uuid, name);
      marker = nextOf(page);
    } while (marker && found.size < MOST_NAMES);
  } catch (error) {
    if (error.kind !== Trouble.HIDDEN && error.kind !== Trouble.MISSING) throw error;
  }
  return found;
}

const isRoot = ({ parent_provider_uuid: parent }) => parent === null;

/**
 * Uuids of the roots that are pools: they lend what they have to the hosts of their aggregates.
 *
 * @param {string[]|null} uuids Only of these; all, where it is null.
 * @returns {Promise<Set<string>>} None where the policy hides them.
 */
export async function pools(api, uuids, signal) {
  const query = { required: SHARING };
  try {
    const rows = uuids ? await providersByUuid(api, uuids, signal, query)
      : (await api.all("/treeclaim/providers", { ...query, limit: MOST }, "providers", signal)).entries;
    return new Set(rows.filter(isRoot).map(({ uuid }) => uuid));
  } catch (error) {
    if (error.kind !== Trouble.HIDDEN) throw error;
    return new Set();
  }
}

/** Providers by their uuids, without what belongs to them unless `more` of the query includes it. */
export async function providersByUuid(api, uuids, signal, more = {}) {
  const found = [];
  for (const some of chunks(uuids)) {
    const query = { uuid: among(some), limit: MOST, ...more };
    found.push(...(await api.all("/treeclaim/providers", query, "providers", signal)).entries);
  }
  return found;
}

/** Providers of a name. */
export const providersNamed = async (api, name, signal) =>
  (await api.all("/treeclaim/providers", { name }, "providers", signal)).entries;

/** All providers of some trees, with what is to be included. */
export async function providersOfTrees(api, roots, include, signal) {
  const limit = include.includes("allocations") ? 1000 : MOST;
  const found = [];
  for (const some of chunks(roots)) {
    const query = { in_tree: among(some), include: include.join(",") || null, limit };
    found.push(...(await api.all("/treeclaim/providers", query, "providers", signal)).entries);
  }
  return found;
}

/** Sharing providers that are in one of some aggregates. */
export async function sharingProviders(api, aggregates, signal) {
  if (!aggregates.length) return [];
  const query = {
    required: SHARING, member_of: `in:${aggregates.join(",")}`,
    include: INCLUDE.join(","), limit: MOST,
  };
  return (await api.all("/treeclaim/providers", query, "providers", signal)).entries;
}

/** One page of consumers, with all that they hold. */
export const consumers = (api, query, signal) => api.get("/treeclaim/allocations", query, signal);

/** What holds have in a tree: for each provider and class, who has how much, and until when. */
export async function heldInTree(api, root, signal) {
  const { entries } = await api.all("/treeclaim/holds", { in_tree: root }, "holds", signal);
  const found = new Map();
  for (const { uuid, project_id: project, allocations, hold } of entries) {
    for (const [provider, { resources }] of Object.entries(allocations)) {
      if (!found.has(provider)) found.set(provider, new Map());
      const classes = found.get(provider);
      for (const [name, amount] of Object.entries(resources)) {
        if (!classes.has(name)) classes.set(name, []);
        classes.get(name).push({ uuid, project, amount, until: hold.until, note: hold.note });
      }
    }
  }
  return found;
}

/** Candidates of a query in the form of the address bar. */
export const candidates = (api, query, signal) => api.get(`/allocation_candidates?${query}`, {}, signal);

/** Candidates of a query as things would be with what is given; `given` of the answer tells what of it was done. */
export const candidatesIf = (api, query, given, signal) =>
  api.post("/treeclaim/candidates", { alternatives: [query], given }, signal);

/** Why a query has the candidates that it has. */
export const explanation = (api, query, signal) =>
  api.get(`/allocation_candidates/explain?${withoutLimit(query)}`, {}, signal);

/**
 * Why a query has no candidate as things would be: a try to place somebody tells, which writes nothing.
 *
 * @returns {Promise<object|null>} Null where it has one.
 */
export async function explanationIf(api, query, given, signal) {
  const requests = [{ alternatives: [query], consumers: [NOBODY], project_id: "nobody", user_id: "nobody", consumer_type: "INSTANCE" }];
  const body = { requests, partial: true, dry_run: true, explain: true, given };
  return (await api.post("/treeclaim/placements", body, signal)).explanation ?? null;
}

const NOBODY = "00000000-0000-4000-8000-000000000000";
/* Who is placed in a try; nobody holds anything by this uuid. */

/** Which domains could be lost. */
export const survival = (api, body, signal) => api.post("/treeclaim/survival", body, signal);

/** Moves that reach a goal. */
export const moves = (api, body, signal) => api.post("/treeclaim/moves", body, signal);

/** Names of the mixes; none where this server or the policy has none. */
export const mixNames = (api, signal) => api.get("/treeclaim/mixes", {}, signal).then(({ mixes }) => Object.keys(mixes), (error) => {
  if (error.kind !== Trouble.HIDDEN && error.kind !== Trouble.MISSING) throw error;
  return [];
});

/** How many consumers of each request fit. */
export const capacity = (api, body, signal) => api.post("/treeclaim/capacity", body, signal);

/** The findings of the audit. */
export const audit = (api, signal) => api.get("/treeclaim/audit", {}, signal);

/** Names of all traits, and of all resource classes. */
export async function names(api, signal) {
  const quietly = (promise) => promise.catch((error) => {
    if (error.kind === Trouble.HIDDEN) return { traits: [], resource_classes: [] };
    throw error;
  });
  const [traits, classes] = await Promise.all([
    quietly(api.get("/traits", {}, signal)), quietly(api.get("/resource_classes", {}, signal)),
  ]);
  return { traits: traits.traits, classes: classes.resource_classes.map(({ name }) => name) };
}

const withoutLimit = (query) => query.split("&").filter((pair) => !pair.startsWith("limit=")).join("&");

const among = (uuids) => (uuids.length === 1 ? uuids[0] : `in:${uuids.join(",")}`);

function chunks(items) {
  const found = [];
  for (let begin = 0; begin < items.length; begin += AT_ONCE) found.push(items.slice(begin, begin + AT_ONCE));
  return found;
}

export { asQuery };
