// SPDX-License-Identifier: Apache-2.0
/** Calls to the service below which these pages are, with the user's token. */

import { CallError, Trouble, errorOf } from "./errors.js";

export const VERSION_HEADER = "OpenStack-API-Version";
export const VERSIONS = "placement 1.39, treeclaim 1.0";

/** Where the service is: the folder above that of the pages, wherever it is mounted. */
export const ENDPOINT = new URL("../..", import.meta.url).href.replace(/\/$/, "");

const MOST_PAGES = 1000;
/* Pages that one list may have: ten million entries. More is a link that leads in a circle. */

/** Calls with a token; `listener` has callbacks for the outcome of each call. */
export class Client {
  /**
   * @param {string} token Sent in `X-Auth-Token`.
   * @param {{refused: () => void, lost: () => void, answered: () => void}} listener Called when
   *   the token is refused, when there is no answer, and when there is an answer.
   */
  constructor(token, listener) {
    this.token = token;
    this.listener = listener;
  }

  /**
   * Send a request.
   *
   * @param {string} path With the query.
   * @param {RequestInit} options Of `fetch`.
   * @returns {Promise<Response>} With a status below 400.
   * @throws {CallError} Without such an answer.
   */
  async send(path, { headers, ...options } = {}) {
    let answer;
    try {
      answer = await fetch(ENDPOINT + path, {
        cache: "no-store", credentials: "omit", redirect: "error", ...options,
        headers: {
          Accept: "application/json", "X-Auth-Token": this.token, [VERSION_HEADER]: VERSIONS,
          ...headers,
        },
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
  async get(path, query, signal) {
    return (await this.send(path + asQuery(query), { signal })).json();
  }

  /** Return the JSON of a POST. */
  async post(path, body, signal) {
    const headers = { "Content-Type": "application/json" };
    const options = { method: "POST", body: JSON.stringify(body), headers, signal };
    return (await this.send(path, options)).json();
  }

  /** Return all pages of a list of the extension; with a body, each page is requested by POST. */
  async pages(path, query, signal, body = null) {
    const pages = [];
    let marker = null;
    do {
      const page = { ...query, marker };
      pages.push(await (body ? this.post(path + asQuery(page), body, signal)
        : this.get(path, page, signal)));
      marker = nextOf(pages.at(-1));
    } while (marker && pages.length < MOST_PAGES);
    return pages;
  }

  /** Return the entries of all pages of a list, which are in `member` of each page. */
  async list(path, query, member, signal) {
    return (await this.pages(path, query, signal)).flatMap((page) => page[member]);
  }
}

/** Return the marker of the next page, null after the last page. */
export function nextOf(page) {
  const link = page.links?.find(({ rel }) => rel === "next");
  return link ? new URL(link.href, "http://any").searchParams.get("marker") : null;
}

/** Write a query with its question mark; null values are left out. */
function asQuery(query) {
  const pairs = Object.entries(query).filter(([, value]) => value !== null);
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
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
