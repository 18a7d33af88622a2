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
   * @param {AbortSignal} signal Ends what is still being read.
   */
  constructor(api, { totals, parts, cursor }, signal) {
    Object.assign(this, { api, totals, cursor, signal });
    this.parts = new Map(parts.map((part) => [part.uuid, part]));
    /* Providers by uuid for each part that was read; names of aggregates by uuid. */
    this.providers = {};
    this.names = new Map();
    this.readings = new Map();
  }

  static async read(api, signal) {
    return new Cloud(api, await endpoints.totals(api, { by: "tree" }, signal), signal);
  }

  get trees() {
    return [...this.parts.values()];
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

  /** Update the cloud with a part of a provider. */
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

  /** Read again what changes (contract page 99, section 4) concern. */
  async apply(changes) {
    const { api, signal } = this;
    const deleted = changes.filter((change) => change.deleted).map(({ uuid }) => uuid);
    const changed = changes.filter((change) => !change.deleted).map(({ uuid }) => uuid);
    const rows = await endpoints.providersByUuid(api, changed, signal);
    // A tree that lost its root, or became part of another tree, no longer exists.
    const former = [...deleted, ...changed].filter((uuid) => this.parts.has(uuid));
    const roots = [...new Set([...rows.map((row) => row.root_provider_uuid), ...former])];
    const [{ totals }, parts] = await Promise.all([
      endpoints.totals(api, {}, signal), endpoints.totalsOfTrees(api, roots, signal),
    ]);
    await this.#readParts(changes, deleted);
    this.totals = totals;
    const found = new Map(parts.map((part) => [part.uuid, part]));
    for (const uuid of roots) {
      if (found.has(uuid)) this.parts.set(uuid, found.get(uuid));
      else this.parts.delete(uuid);
    }
  }

  /** Read parts of changed providers again. */
  async #readParts(changes, deleted) {
    // Readings that are under way may be older than the changes; the page shows their failures.
    await Promise.allSettled(this.readings.values());
    for (const [part, providers] of Object.entries(this.providers)) {
      for (const uuid of deleted) providers.delete(uuid);
      const uuids = concernedIn(changes, part);
      const query = endpoints.including([part]);
      const rows = await endpoints.providersByUuid(this.api, uuids, this.signal, query)
        .catch(ignoreHidden);
      for (const row of rows ?? []) this.take(part, row);
    }
  }
}

/** Uuids of providers that were created, or of which a part changed. */
const concernedIn = (changes, part) => changes.filter(({ deleted, what }) => !deleted
  && (what.includes(part) || what.includes("provider"))).map(({ uuid }) => uuid);

/** Reads that the policy forbids are skipped; the page already shows that they are hidden. */
function ignoreHidden(error) {
  if (error.kind !== Trouble.HIDDEN) throw error;
}
