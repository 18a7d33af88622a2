// SPDX-License-Identifier: Apache-2.0
/** Addresses of the pages: behind the `#`, which no server and no log gets to see. */

/**
 * Read the address bar.
 *
 * @returns {{page: string, item: string|null, query: string}} The page, what it shows (null if that
 *   cannot be read, or something follows it), its parameters.
 */
export function readRoute() {
  const text = location.hash.replace(/^#\/?/, "");
  const [path, ...rest] = text.split("?");
  const [page, item = "", ...further] = path.split("/");
  const isItem = !further.some(Boolean);
  return { page: page || "cloud", item: isItem ? decoded(item) : null, query: rest.join("?") };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Write an address. */
export function address(page, item = "", query = "") {
  const text = typeof query === "string" ? query : new URLSearchParams(query).toString();
  return `#/${page}${item ? `/${encodeURIComponent(item)}` : ""}${text ? `?${text}` : ""}`;
}

export const treeAddress = (uuid) => address("tree", uuid);

export const consumerAddress = (uuid) => address("consumers", uuid);
