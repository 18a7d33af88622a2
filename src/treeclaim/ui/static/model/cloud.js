// SPDX-License-Identifier: Apache-2.0
/** The cloud as the map shows it: one entry a tree, kept current while things change. */

import * as endpoints from "../api/endpoints.js";
import { Trouble } from "../api/errors.js";
import { Conditions } from "./conditions.js";
import { summed } from "./totals.js";

/** All trees, in the order in which they came into being. */
export class Cloud {
  /** @param {AbortSignal} signal Ends what is still being read. */
  constructor({ parts, cursor }, pools, signal) {
    this.cursor = cursor;
    this.parts = new Map(parts.map((part) => [part.uuid, { ...part, isPool: pools.has(part.uuid) }]));
    this.signal = signal;
    /* Aggregates by root, once somebody wants to know; and their reading. */
    this.aggregatesOf = null;
    this.grouping = null;
    /* Names of aggregates, read with them. */
    this.names = new Map();
    /* Who has conditions, once that is read; and its reading. */
    this.conditions = null;
    this.conditionsReading = null;
  }

  static async read(api, signal) {
    const totals = await endpoints.totalsByTree(api, {}, signal);
    // After the totals: the feed tells from their cursor on what changes in between.
    return new Cloud(totals, await endpoints.pools(api, null, signal), signal);
  }

  /** Read which aggregates the roots are in, once; from then on `aggregatesOf` is kept current too. */
  group(api) {
    this.grouping ??= Promise.all([
      endpoints.aggregatesOfRoots(api, this.signal), endpoints.aggregateNames(api, this.signal),
    ]).then(
      ([found, names]) => { this.aggregatesOf = found; this.names = names; return found; },
      (error) => { this.grouping = null; throw error; },
    );
    return this.grouping;
  }

  /** Read who has conditions, once; from then on `conditions` is kept current too. */
  readConditions(api) {
    this.conditionsReading ??= endpoints.conditioned(api, this.signal).then(
      (rows) => { this.conditions = new Conditions(); this.conditions.take(rows); },
      (error) => { this.conditionsReading = null; throw error; },
    );
    return this.conditionsReading;
  }

  get trees() {
    return [...this.parts.values()];
  }

  get totals() {
    return summed(this.parts.values());
  }

  /**
   * Read everything anew.
   *
   * @returns {Promise<Set<string>>} Uuids of trees that differ.
   */
  async readAgain(api, signal) {
    const other = await Cloud.read(api, signal);
    if (this.grouping) {
      await this.grouping.catch(leaveHidden);
      this.grouping = null;
      await this.group(api).catch(leaveHidden);
    }
    if (this.conditionsReading) {
      await this.conditionsReading.catch(leaveHidden);
      this.conditionsReading = null;
      await this.readConditions(api).catch(leaveHidden);
    }
    const changed = new Set();
    for (const [uuid, part] of other.parts) {
      if (JSON.stringify(this.parts.get(uuid)) !== JSON.stringify(part)) changed.add(uuid);
    }
    this.parts = other.parts;
    this.cursor = other.cursor;
    return changed;
  }

  /**
   * Read anew what changes concern.
   *
   * @param {object[]} changes Of contract page 99, section 4.
   * @returns {Promise<Set<string>>} Uuids of trees that differ.
   */
  async apply(api, changes, signal) {
    const deleted = changes.filter((change) => change.deleted).map(({ uuid }) => uuid);
    const others = changes.filter((change) => !change.deleted).map(({ uuid }) => uuid);
    // A reading that is under way may be older than the changes, so it comes first; the page tells how it failed.
    await this.conditionsReading?.catch(() => null);
    const rows = await endpoints.providersByUuid(api, others, signal, this.conditions ? { include: "conditions" } : {});
    this.conditions?.take(rows);
    this.conditions?.drop(deleted);
    const known = [...deleted, ...others].filter((uuid) => this.parts.has(uuid));
    // A tree that lost its root, or became part of another one, is none any more.
    const roots = [...new Set([...rows.map((row) => row.root_provider_uuid), ...known])];
    const parts = await endpoints.totalsOfTrees(api, roots, signal);
    const pools = await this.#poolsAfter(api, changes, signal);
    const moved = await this.#movedBy(api, changes, signal);
    const found = new Map(parts.map((part) => [part.uuid, { ...part, isPool: pools.has(part.uuid) }]));
    const changed = new Set();
    for (const uuid of roots) {
      const part = found.get(uuid);
      if (!part) this.parts.delete(uuid);
      else if (moved.has(uuid) || JSON.stringify(this.parts.get(uuid)) !== JSON.stringify(part)) {
        this.parts.set(uuid, part);
        changed.add(uuid);
      }
    }
    return changed;
  }

  /** The pools after some changes: of what did not change its traits they are as they were. */
  async #poolsAfter(api, changes, signal) {
    const pools = new Set(this.trees.filter(({ isPool }) => isPool).map(({ uuid }) => uuid));
    const uuids = concernedIn(changes, "traits");
    for (const uuid of uuids) pools.delete(uuid);
    for (const uuid of await endpoints.pools(api, uuids, signal)) pools.add(uuid);
    return pools;
  }

  /** Read the aggregates anew of what changed them; tell of which they differ. */
  async #movedBy(api, changes, signal) {
    const uuids = concernedIn(changes, "aggregates");
    const moved = new Set();
    if (!this.grouping || !uuids.length) return moved;
    try {
      // A reading that is under way may be older than the changes, so it comes first.
      await this.grouping;
      for (const { uuid, aggregates } of await endpoints.providersByUuid(api, uuids, signal, { include: "aggregates" })) {
        if (`${this.aggregatesOf.get(uuid)}` !== `${aggregates}`) moved.add(uuid);
        this.aggregatesOf.set(uuid, aggregates);
      }
    } catch (error) { leaveHidden(error); }
    return moved;
  }
}

/** Uuids of what changed a part of it, or came into being. */
const concernedIn = (changes, part) => changes
  .filter(({ deleted, what }) => !deleted && (what.includes(part) || what.includes("provider"))).map(({ uuid }) => uuid);

/** What the policy hides is not kept current, and the page has said so. */
function leaveHidden(error) {
  if (error.kind !== Trouble.HIDDEN) throw error;
}
