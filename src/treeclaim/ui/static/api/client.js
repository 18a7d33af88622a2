// SPDX-License-Identifier: Apache-2.0
/** Calls to the service below which these pages are, with the user's token. */

import { CallError, Trouble, errorOf } from "./errors.js";

export const VERSION_HEADER = "OpenStack-API-Version";
export const VERSIONS = "placement 1.39, treeclaim 1.0";

/** Where the service is: the folder above that of the pages, wherever it is mounted. */
export const ENDPOINT = new URL("../..", import.meta.url).href.replace(/\/$/, "");

const MOST_PAGES = 1000;
/* Pages that one list may have: ten million entries. More is a link that leads in a circle. */

/** The calls, and who is told how they end. */
export class Client {
  /**
   * @param {string} token Sent in `X-Auth-Token`.
   * @param {{refused: () => void, lost: () => void, answered: () => void}} listener Told when the
   *   token is refused, when there is no answer, and when there is one.
   */
  constructor(token, listener) {
    this.token = token;
    this.listener = listener;
  }

  /** Return the headers of each call. */
  headers(more = {}) {
    return {
      Accept: "application/json", "X-Auth-Token": this.token, [VERSION_HEADER]: VERSIONS, ...more,
    };
  }

  /**
   * Send a request; throws a CallError unless it is answered well.
   *
   * @param {string} path With the query.
   * @param {RequestInit} options Of `fetch`.
   * @returns {Promise<Response>}
   */
  async send(path, options = {}) {
    let answer;
    try {
      answer = await fetch(ENDPOINT + path, {
        cache: "no-store", credentials: "omit", redirect: "error", ...options,
        headers: this.headers(options.headers),
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      this.listener.lost();
      throw new CallError(Trouble.LOST, "The server does not answer.");
    }
    this.listener.answered();
    if (answer.ok) return answer;
    const error = await errorOf(answer);
    if (error.kind === Trouble.REFUSED) this.listener.refused();
    throw error;
  }

  /** Return the JSON of a GET. */
  async get(path, query = {}, signal = undefined) {
    return (await this.send(path + asQuery(query), { signal })).json();
  }

  /** Return the JSON of a POST. */
  async post(path, body, signal = undefined) {
    const headers = { "Content-Type": "application/json" };
    const options = { method: "POST", body: JSON.stringify(body), headers, signal };
    return (await this.send(path, options)).json();
  }

  /**
   * Read all pages of a list of the extension.
   *
   * @param {string} member Which list of the answer.
   * @param {object|null} body What is posted with the query; null for a GET.
   * @returns {Promise<{first: object, entries: object[]}>} The first page, and all entries.
   */
  async all(path, query, member, signal = undefined, body = null) {
    const read = (more) => (body ? this.post(path + asQuery({ ...query, ...more }), body, signal) : this.get(path, { ...query, ...more }, signal));
    const first = await read({});
    const entries = [...first[member]];
    let next = nextOf(first);
    for (let page = 1; next && page < MOST_PAGES; page += 1) {
      const answer = await read({ marker: next });
      for (const entry of answer[member]) entries.push(entry);
      next = nextOf(answer);
    }
    return { first, entries };
  }
}

/** Return the marker of the next page, null behind the last one. */
export function nextOf(answer) {
  const link = (answer.links ?? []).find(({ rel }) => rel === "next");
  return link ? new URL(link.href, "http://any").searchParams.get("marker") : null;
}

/** Write a query, with the question mark; a value may be a list, and one that is null is left out. */
export function asQuery(query) {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const item of [value].flat()) if (item !== null && item !== undefined) pairs.append(name, item);
  }
  const text = pairs.toString();
  return text ? `?${text}` : "";
}

/**
 * Find out how callers are authenticated, without a token.
 *
 * @returns {Promise<{reached: boolean, isNoauth: boolean, keystone: string}>}
 */
export async function authentication() {
  try {
    const answer = await fetch(`${ENDPOINT}/resource_providers?limit`, { credentials: "omit" });
    const challenge = answer.headers.get("www-authenticate") ?? "";
    const keystone = /uri="([^"]*)"/.exec(challenge)?.[1] ?? "";
    return { reached: true, isNoauth: answer.status === 401 && !challenge, keystone };
  } catch {
    return { reached: false, isNoauth: false, keystone: "" };
  }
}
