// SPDX-License-Identifier: Apache-2.0
/** What units of an inventory take of others (contract page 102, section 2). */

import { count, counted, shortened } from "./numbers.js";
import { own } from "./texts.js";

const MOST_TOLD = 16;
/* Of those that consume of one inventory; a card may have more profiles and positions. */

/** Who consumes of what among some providers. */
export class Consumption {
  /** @param {object[]} rows Providers as GET /treeclaim/providers lists them. */
  constructor(rows) {
    this.names = new Map(rows.map(({ uuid, name }) => [uuid, name]));
    this.consumers = new Map();
    for (const row of rows) this.#note(row);
  }

  #note({ name, inventories, usages }) {
    for (const [resourceClass, { consumes }] of Object.entries(inventories ?? {})) {
      const allocated = own(usages, resourceClass) ?? 0;
      for (const { provider, resource_class: consumed, amount } of allocated ? consumes ?? [] : []) {
        const place = placeOf(provider, consumed);
        if (!this.consumers.has(place)) this.consumers.set(place, []);
        this.consumers.get(place).push({ name, resourceClass, used: allocated * amount });
      }
    }
  }

  /** Who consumes of an inventory now, each in words, who takes most first. */
  consumersOf(uuid, resourceClass) {
    const all = (this.consumers.get(placeOf(uuid, resourceClass)) ?? []).sort((one, other) => other.used - one.used);
    const told = all.slice(0, MOST_TOLD)
      .map(({ name, resourceClass: consumer, used }) => `${count(used)} consumed by ${consumer} of ${name}`);
    const others = all.slice(MOST_TOLD);
    const rest = others.reduce((sum, { used }) => sum + used, 0);
    return others.length ? [...told, `${count(rest)} consumed by ${counted(others.length, "other")}`] : told;
  }

  /** What each unit of an inventory takes elsewhere, in words, by the provider that it is taken of. */
  takenBy({ consumes }) {
    const parts = new Map();
    for (const { provider, resource_class: consumed, amount } of consumes ?? []) {
      if (!parts.has(provider)) parts.set(provider, []);
      parts.get(provider).push(`${count(amount)} ${consumed}`);
    }
    return [...parts].map(([provider, amounts]) => `each takes ${amounts.join(" and ")} of ${this.names.get(provider) ?? shortened(provider)}`);
  }
}

const placeOf = (uuid, resourceClass) => `${uuid} ${resourceClass}`;
