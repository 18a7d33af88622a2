// SPDX-License-Identifier: Apache-2.0
/** The cloud as the map shows it: one entry a tree, kept current while things change. */

import * as endpoints from "../api/endpoints.js";
import { summed } from "./totals.js";

/** All trees, in the order in which they came into being. */
export class Cloud {
  constructor({ parts, cursor }) {
    this.cursor = cursor;
    this.parts = new Map(parts.map((part) => [part.uuid, part]));
  }

  static async read(api, signal) {
    return new Cloud(await endpoints.totalsByTree(api, {}, signal));
  }

  get trees() {
    return [...this.parts.values()];
  }

  get totals() {
    return summed(this.parts.values());
  }

  /**
   * Take over another reading of everything.
   *
   * @returns {Set<string>} Uuids of trees that differ.
   */
  replace(other) {
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
    const rows = await endpoints.providersByUuid(api, others, signal);
    const known = [...deleted, ...others].filter((uuid) => this.parts.has(uuid));
    // A tree that lost its root, or became part of another one, is none any more.
    const roots = [...new Set([...rows.map((row) => row.root_provider_uuid), ...known])];
    const parts = await endpoints.totalsOfTrees(api, roots, signal);
    const found = new Map(parts.map((part) => [part.uuid, part]));
    const changed = new Set();
    for (const uuid of roots) {
      const part = found.get(uuid);
      if (!part) this.parts.delete(uuid);
      else if (JSON.stringify(this.parts.get(uuid)) !== JSON.stringify(part)) {
        this.parts.set(uuid, part);
        changed.add(uuid);
      }
    }
    return changed;
  }
}
