// SPDX-License-Identifier: Apache-2.0
/** A question as others ask it: curl, Python, a flavor. None of them has the token in it. */

import { VERSIONS, VERSION_HEADER } from "../api/client.js";
import { PARAMETERS } from "./parameters.js";
import { TraitRule, encoded, pairsOf, readQuery } from "./query.js";
import { own, pythonString, shellComment, shellWord } from "./texts.js";

export const asCurl = (endpoint, query) => [
  "curl -s -H \"X-Auth-Token: $OS_TOKEN\" \\",
  `  -H ${shellWord(`${VERSION_HEADER}: ${VERSIONS}`)} \\`,
  `  ${shellWord(`${endpoint}/allocation_candidates?${query}`)}`,
].join("\n");

/** The same question as things would be with what is given. */
export const asCurlIf = (endpoint, query, given) => [
  "curl -s -H \"X-Auth-Token: $OS_TOKEN\" -H 'Content-Type: application/json' \\",
  `  -H ${shellWord(`${VERSION_HEADER}: ${VERSIONS}`)} \\`,
  `  -d ${shellWord(JSON.stringify({ alternatives: [query], given }))} \\`,
  `  ${shellWord(`${endpoint}/treeclaim/candidates`)}`,
].join("\n");

export const asPython = (endpoint, query) => [
  "import os",
  "from treeclaim.client import Client",
  "",
  `with Client(${pythonString(endpoint)}, os.environ["OS_TOKEN"]) as client:`,
  "    answer = client.candidates(",
  ...pairsOf(query).map(([name, value], index) => `        ${pythonString(`${index ? "&" : ""}${encoded(name)}=${encoded(value)}`)}`),
  "    )",
].join("\n");

const WHOLE_SPECS = new Set([
  "group_policy", "same_subtree", "root_required", "root_member_of", "isolate", "can_split", "split_policy",
  "root_where", "match", "distinct",
]);

/**
 * Write the extra specs of a flavor (contract page 97, section 4).
 *
 * @returns {{lines: string[], left: string[]}} The specs, and what no flavor can say.
 */
export function asExtraSpecs(query) {
  const { groups, whole, others } = readQuery(query);
  const lines = [];
  const left = [];
  const counts = new Map();
  // A flavor has each key once, so what may come again has a number.
  const keyOf = (name, suffix = "") => {
    const key = `${name}${suffix}`;
    if (!own(PARAMETERS, name)?.flavorNumbers) return key;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    return `${key}:${counts.get(key)}`;
  };
  for (const { suffix, resources, traits, places } of groups) {
    for (const { name, amount } of resources) lines.push(`resources${suffix}:${name}=${amount}`);
    for (const { rule, name } of traits) {
      if (rule === TraitRule.REQUIRED || rule === TraitRule.FORBIDDEN) lines.push(`trait${suffix}:${name}=${rule}`);
      else left.push(`${rule} ${name}`);
    }
    for (const { kind, value } of places) lines.push(`${keyOf(kind, suffix)}=${value}`);
  }
  for (const [name, value] of [...whole, ...others]) {
    if (WHOLE_SPECS.has(name)) lines.push(`${keyOf(name)}=${value}`);
    else left.push(`${name}=${value}`);
  }
  return { lines, left };
}

export const asFlavor = (query) => {
  const { lines, left } = asExtraSpecs(query);
  return [
    "openstack flavor set FLAVOR \\",
    lines.map((line) => `  --property ${shellWord(line)}`).join(" \\\n"),
    ...left.map((item) => shellComment("no extra spec says", item)),
  ].join("\n");
};
