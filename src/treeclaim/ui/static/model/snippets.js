// SPDX-License-Identifier: Apache-2.0
/** A query for other programs: curl, Python, a flavor. None of them contains the token. */

import { ENDPOINT, VERSIONS, VERSION_HEADER } from "../api/client.js";
import { PARAMETERS } from "./parameters.js";
import { TraitRule, encoded, pairsOf, readQuery } from "./query.js";
import { own, pythonString, shellComment, shellWord } from "./texts.js";

/** A command that sends a query. */
export const asCurl = (query) => [
  'curl -s -H "X-Auth-Token: $OS_TOKEN"',
  `-H ${shellWord(`${VERSION_HEADER}: ${VERSIONS}`)}`,
  shellWord(`${ENDPOINT}/allocation_candidates?${query}`),
].join(" \\\n  ");

export const asPython = (query) => [
  "import os",
  "from treeclaim.client import Client",
  "",
  `with Client(${pythonString(ENDPOINT)}, os.environ["OS_TOKEN"]) as client:`,
  "    answer = client.candidates(",
  ...pairsOf(query).map(([name, value], index) =>
    `        ${pythonString(`${index ? "&" : ""}${encoded(name)}=${encoded(value)}`)}`),
  "    )",
].join("\n");

const IN_NO_FLAVOR = new Set(["limit", "order_by", "root_in_tree", "from_holds"]);
/* Parameters for listing or ownership, which are no requirements of a server. */

/** A command that sets the extra specs of a flavor (contract page 97, section 4). */
export function asFlavor(query) {
  const { groups, whole, others } = readQuery(query);
  const specs = [];
  const left = [];
  const counts = new Map();
  // A flavor has each key once, so a parameter that may come again has a number.
  const add = (name, value, suffix = "") => {
    const key = `${name}${suffix}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    const number = own(PARAMETERS, name)?.flavorNumbers ? `:${counts.get(key)}` : "";
    specs.push(`${key}${number}=${value}`);
  };
  for (const { suffix, resources, traits, places } of groups) {
    for (const { name, amount } of resources) specs.push(`resources${suffix}:${name}=${amount}`);
    for (const { rule, name } of traits) {
      const isSpec = rule === TraitRule.REQUIRED || rule === TraitRule.FORBIDDEN;
      if (isSpec) specs.push(`trait${suffix}:${name}=${rule}`);
      else left.push(`${rule} ${name}`);
    }
    for (const { kind, value } of places) add(kind, value, suffix);
  }
  for (const [name, value] of whole) {
    if (IN_NO_FLAVOR.has(name)) left.push(`${name}=${value}`);
    else add(name, value);
  }
  left.push(...others.map(([name, value]) => `${name}=${value}`));
  return [
    "openstack flavor set FLAVOR \\",
    specs.map((spec) => `  --property ${shellWord(spec)}`).join(" \\\n"),
    ...left.map((item) => shellComment("no extra spec says", item)),
  ].join("\n");
}
