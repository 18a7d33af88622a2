// SPDX-License-Identifier: Apache-2.0
/** What units of an inventory consume elsewhere (contract page 102, section 2). */

import { count, counted, shortened } from "./numbers.js";
import { own } from "./texts.js";

const MOST_SHOWN = 16;
/* Inventories that consume of one inventory; a card may have more profiles and positions. */

/** Who consumes of what among some providers. */
export class Consumption {
  /** @param {object[]} rows Providers as GET /treeclaim/providers lists them. */
  constructor(rows) {
    this.names = new Map(rows.map(({ uuid, name }) => [uuid, name]));
    const all = rows.flatMap(({ name, inventories, usages }) =>
      Object.entries(inventories ?? {}).flatMap(([by, { consumes = [] }]) =>
        consumes.map(({ provider, resource_class: consumed, amount }) => ({
          place: `${provider} ${consumed}`, name, by, used: amount * (own(usages, by) ?? 0),
        }))));
    this.byPlace = Map.groupBy(all.filter(({ used }) => used), ({ place }) => place);
  }

  /** Who consumes of an inventory now, each in words, the largest amounts first. */
  consumersOf(uuid, resourceClass) {
    const all = (this.byPlace.get(`${uuid} ${resourceClass}`) ?? [])
      .toSorted((one, other) => other.used - one.used);
    const lines = all.slice(0, MOST_SHOWN)
      .map(({ name, by, used }) => `${count(used)} consumed by ${by} of ${name}`);
    const others = all.slice(MOST_SHOWN);
    const rest = others.reduce((sum, { used }) => sum + used, 0);
    if (rest) lines.push(`${count(rest)} consumed by ${counted(others.length, "other")}`);
    return lines;
  }

  /** What each unit of an inventory consumes, in words, by the provider that it is taken from. */
  takenBy({ consumes = [] }) {
    return [...Map.groupBy(consumes, ({ provider }) => provider)].map(([provider, parts]) => {
      const amounts = parts.map(({ amount, resource_class: name }) => `${count(amount)} ${name}`);
      const name = this.names.get(provider) ?? shortened(provider);
      return `each takes ${amounts.join(" and ")} of ${name}`;
    });
  }
}
