// SPDX-License-Identifier: Apache-2.0
/** The cloud as the map shows it: one entry for each tree, kept current while things change. */

import * as endpoints from "../api/endpoints.js";
import { Trouble } from "../api/errors.js";
import { Conditions } from "./conditions.js";

/** All trees in order of creation, the totals of the cloud and, once read, what else is known. */
export class Cloud {
  /**
   * @param {{totals: object, parts: object[], cursor: string}} totals By tree.
   * @param {Set<string>} pools Uuids of the trees that are pools.
   * @param {AbortSignal} signal Ends what is still being read.
   */
  constructor(api, { totals, parts, cursor }, pools, signal) {
    Object.assign(this, { api, totals, cursor, pools, signal });
    this.parts = new Map(parts.map((part) => [part.uuid, part]));
    /* Null until they are read: aggregates by root, and conditions of providers. */
    this.aggregatesOf = null;
    this.conditions = null;
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

  /** Read the aggregates of the roots, and names of aggregates; from then on they stay current. */
  readAggregates() {
    return this.#readOnce("aggregates", async () => {
      const [aggregatesOf, names] = await Promise.all([
        endpoints.aggregatesOfRoots(this.api, this.signal),
        endpoints.aggregateNames(this.api, this.signal),
      ]);
      Object.assign(this, { aggregatesOf, names });
    });
  }

  /** Read the conditions of all providers; from then on they stay current. */
  readConditions() {
    return this.#readOnce("conditions", async () => {
      this.conditions = new Conditions(await endpoints.conditioned(this.api, this.signal));
    });
  }

  #readOnce(name, read) {
    if (!this.readings.has(name)) {
      const reading = read().catch((error) => {
        this.readings.delete(name);
        throw error;
      });
      this.readings.set(name, reading);
    }
    return this.readings.get(name);
  }

  /** Read everything again that this cloud has read; return the new cloud. */
  async readAgain() {
    const cloud = await Cloud.read(this.api, this.signal);
    if (this.readings.has("aggregates")) await cloud.readAggregates().catch(ignoreHidden);
    if (this.readings.has("conditions")) await cloud.readConditions().catch(ignoreHidden);
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

  /** Read aggregates and conditions again; return the uuids of roots whose aggregates differ. */
  async #readParts(changes, deleted) {
    // Readings that are under way may be older than the changes; the page shows their failures.
    await Promise.allSettled(this.readings.values());
    this.conditions?.drop(deleted);
    const moved = new Set();
    const read = async (part, take) => {
      const uuids = concernedIn(changes, part);
      const query = endpoints.including([part]);
      try {
        for (const row of await endpoints.providersByUuid(this.api, uuids, this.signal, query)) {
          take(row);
        }
      } catch (error) {
        ignoreHidden(error);
      }
    };
    if (this.conditions) await read("conditions", (row) => this.conditions.take(row));
    if (this.aggregatesOf) {
      await read("aggregates", ({ uuid, aggregates }) => {
        if (`${this.aggregatesOf.get(uuid)}` !== `${aggregates}`) moved.add(uuid);
        this.aggregatesOf.set(uuid, aggregates);
      });
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
