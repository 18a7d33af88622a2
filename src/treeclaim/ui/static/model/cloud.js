// SPDX-License-Identifier: Apache-2.0
/** The cloud as the map shows it: one entry for each tree, kept current while things change. */

import * as endpoints from "../api/endpoints.js";
import { Trouble } from "../api/errors.js";

/** Parts that the map shows, and whether a provider with such a part is kept. */
const KEPT = {
  aggregates: ({ parent_provider_uuid: parent }) => parent === null,
  conditions: ({ conditions }) => Object.keys(conditions).length > 0,
};

/** All trees in order of creation, the totals of the cloud, and parts of providers. */
export class Cloud {
  /**
   * @param {{totals: object, parts: object[], cursor: string}} totals By tree.
   * @param {Set<string>} pools Uuids of the trees that are pools.
   * @param {AbortSignal} signal Ends what is still being read.
   */
  constructor(api, { totals, parts, cursor }, pools, signal) {
    Object.assign(this, { api, totals, cursor, pools, signal });
    this.parts = new Map(parts.map((part) => [part.uuid, part]));
    /* Providers by uuid for each part that was read; names of aggregates by uuid. */
    this.providers = {};
    this.names = new Map();
    this.readings = new Map();
  }

  static async read(api, signal) {
    const totals = await endpoints.totals(api, { by: "tree" }, signal);
    // After the totals: the feed lists from their cursor on what changes in between.
    return new Cloud(api, totals, await endpoints.pools(api, null, signal), signal);
  }

  get trees() {
    return [...this.parts.values()].map((part) => ({ ...part, isPool: this.pools.has(part.uuid) }));
  }

  /** Aggregates of a root; none before they are read. */
  aggregatesOf(root) {
    return this.providers.aggregates?.get(root)?.aggregates ?? [];
  }

  /** Read a part of all providers, `aggregates` or `conditions`, once; then it stays current. */
  readPart(part) {
    if (!this.readings.has(part)) {
      const reading = this.#readAll(part).catch((error) => {
        this.readings.delete(part);
        throw error;
      });
      this.readings.set(part, reading);
    }
    return this.readings.get(part);
  }

  async #readAll(part) {
    const { api, signal } = this;
    const [rows, names] = await Promise.all([
      endpoints.providers(api, endpoints.including([part]), signal),
      part === "aggregates" && endpoints.aggregateNames(api, signal),
    ]);
    if (names) this.names = names;
    this.providers[part] = new Map();
    for (const row of rows) this.take(part, row);
  }

  /** Take in a provider whose part was read. */
  take(part, row) {
    if (KEPT[part](row)) this.providers[part].set(row.uuid, row);
    else this.providers[part].delete(row.uuid);
  }

  /** Read everything again that this cloud has read; return the new cloud. */
  async readAgain() {
    const cloud = await Cloud.read(this.api, this.signal);
    for (const part of this.readings.keys()) await cloud.readPart(part).catch(ignoreHidden);
    return cloud;
  }

  /** Uuids of the trees that differ from those of another cloud. */
  differencesFrom(other) {
    const before = new Map(other.trees.map((tree) => [tree.uuid, JSON.stringify(tree)]));
    return this.trees.filter((tree) => before.get(tree.uuid) !== JSON.stringify(tree))
      .map(({ uuid }) => uuid);
  }

  /**
   * Read again what changes concern.
   *
   * @param {object[]} changes Of contract page 99, section 4.
   * @returns {Promise<string[]>} Uuids of the trees that differ.
   */
  async apply(changes) {
    const { api, signal } = this;
    const deleted = changes.filter((change) => change.deleted).map(({ uuid }) => uuid);
    const changed = changes.filter((change) => !change.deleted).map(({ uuid }) => uuid);
    const rows = await endpoints.providersByUuid(api, changed, signal);
    // A tree that lost its root, or became part of another tree, no longer exists.
    const former = [...deleted, ...changed].filter((uuid) => this.parts.has(uuid));
    const roots = [...new Set([...rows.map((row) => row.root_provider_uuid), ...former])];
    const traits = concernedIn(changes, "traits");
    const [{ totals }, parts, pools] = await Promise.all([
      endpoints.totals(api, {}, signal),
      endpoints.totalsOfTrees(api, roots, signal),
      endpoints.pools(api, traits, signal),
    ]);
    const moved = await this.#readParts(changes, deleted);
    const before = new Map(roots.map((uuid) => [uuid, this.#textOf(uuid)]));
    this.totals = totals;
    for (const uuid of traits) this.pools.delete(uuid);
    for (const uuid of pools) this.pools.add(uuid);
    const found = new Map(parts.map((part) => [part.uuid, part]));
    for (const uuid of roots) {
      if (found.has(uuid)) this.parts.set(uuid, found.get(uuid));
      else this.parts.delete(uuid);
    }
    return roots.filter((uuid) => this.parts.has(uuid)
      && (moved.has(uuid) || before.get(uuid) !== this.#textOf(uuid)));
  }

  #textOf(uuid) {
    return JSON.stringify([this.parts.get(uuid), this.pools.has(uuid)]);
  }

  /** Read parts of changed providers again; return the uuids whose aggregates differ. */
  async #readParts(changes, deleted) {
    // Readings that are under way may be older than the changes; the page shows their failures.
    await Promise.allSettled(this.readings.values());
    const moved = new Set();
    for (const [part, providers] of Object.entries(this.providers)) {
      for (const uuid of deleted) providers.delete(uuid);
      const uuids = concernedIn(changes, part);
      const query = endpoints.including([part]);
      const rows = await endpoints.providersByUuid(this.api, uuids, this.signal, query)
        .catch(ignoreHidden);
      for (const row of rows ?? []) {
        const before = providers.get(row.uuid);
        this.take(part, row);
        if (`${before?.aggregates}` !== `${row.aggregates}`) moved.add(row.uuid);
      }
    }
    return moved;
  }
}

/** Uuids of providers that were created, or of which a part changed. */
const concernedIn = (changes, part) => changes.filter(({ deleted, what }) => !deleted
  && (what.includes(part) || what.includes("provider"))).map(({ uuid }) => uuid);

/** What the policy hides is not kept current; the page has said that it is hidden. */
function ignoreHidden(error) {
  if (error.kind !== Trouble.HIDDEN) throw error;
}
