// SPDX-License-Identifier: Apache-2.0
/** Pasted flavors, and the queries that Nova sends for their servers. */

/** Flavors cannot be read; the message names the flavor or the line. */
export class FlavorError extends Error {}

const MOST_FLAVORS = 256;
/* Bound of one count (contract page 98, section 5). */

const SIZE = /^(vcpus|ram|disk|ephemeral|swap|os-flv-ext-data:ephemeral)$/i;
const SPECS = /^(extra_specs|properties)$/i;
const isMapping = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Read flavors and translate them to queries.
 *
 * @param {string} text JSON of `openstack flavor list --long -f json` or of `flavor show`, or
 *   lines: `[NAME]` or `NAME:` begins a flavor, `KEY=VALUE` is one of its sizes or extra specs, and
 *   `NAME: resources=…` is a query.
 * @returns {Promise<{name: string, query: string}[]>} Names that occur twice get a number.
 * @throws {FlavorError} If the text cannot be read, or the server cannot translate a flavor.
 */
export async function readFlavors(api, text, signal) {
  const trimmed = text.trim();
  const entries = /^[[{]\s*["{\]}]/.test(trimmed) ? fromJson(trimmed) : fromLines(trimmed);
  if (entries.length > MOST_FLAVORS) {
    const most = `at most ${MOST_FLAVORS} are counted at once`;
    throw new FlavorError(`${entries.length} flavors; ${most}.`);
  }
  const isQuery = (entry) => typeof entry?.query === "string";
  const flavors = entries.filter((entry) => !isQuery(entry));
  const translated = flavors.length
    ? (await api.post("/treeclaim/flavors", { flavors, as_nova: true }, signal)).flavors : [];
  const counts = new Map();
  return entries.map((entry) => {
    const { name, query, error } = isQuery(entry) ? entry : translated.shift();
    if (error) throw new FlavorError(`${name}: ${error}`);
    if (!query.includes("resources")) throw new FlavorError(`${name}: it requests no resources`);
    counts.set(name, (counts.get(name) ?? 0) + 1);
    return { name: counts.get(name) > 1 ? `${name} (${counts.get(name)})` : name, query };
  });
}

/** Read one flavor, a list of flavors, or flavors by name. */
function fromJson(text) {
  let document;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw new FlavorError(`this is not JSON: ${error.message}`);
  }
  return isMapping(document) && !isFlavor(document)
    ? Object.entries(document).map(([name, flavor]) => ({ ...flavor, name }))
    : [document].flat();
}

const isFlavor = (document) => !Object.values(document).every(isMapping)
  || Object.keys(document).some((name) => SPECS.test(name));

function fromLines(text) {
  const entries = [];
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim().replace(/^--property\s+/, "").replace(/^(['"])(.*)\1$/, "$2");
    const [, name, query] = /^([^=\s]+):\s+(\S+=\S*)$/.exec(line) ?? [];
    const [, section, heading = section] = /^(?:\[(.+)\]|([^=\s]+):)$/.exec(line) ?? [];
    if (name) entries.push({ name, query: query.replace(/^\?/, "") });
    else if (heading) entries.push({ name: heading, pairs: [] });
    else if (line && !line.startsWith("#")) {
      const [, key, value] = /^([^=]+?)\s*=\s*(.*)$/.exec(line) ?? [];
      if (!key) throw new FlavorError(`line ${index + 1}: expected KEY=VALUE, NAME: or [NAME]`);
      if (!entries.at(-1)?.pairs) entries.push({ name: "flavor", pairs: [] });
      entries.at(-1).pairs.push([key, value]);
    }
  }
  return entries.map(({ name, query, pairs = [] }) => {
    const { sizes = [], specs = [] } = Object.groupBy(
      pairs, ([key]) => (SIZE.test(key) ? "sizes" : "specs"));
    const flavor = { ...Object.fromEntries(sizes), extra_specs: Object.fromEntries(specs) };
    return query ? { name, query } : { ...flavor, name };
  });
}
