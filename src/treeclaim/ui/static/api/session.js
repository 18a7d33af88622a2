// SPDX-License-Identifier: Apache-2.0
/** The token of this tab. It is in no address, in no cookie, and gone with the tab. */

const KEY = "treeclaim.token";

const NO_HEADER_HAS = /[^\x20-\x7e]/u;
/* Headers are ASCII (RFC 9110, section 5.5), and browsers throw at most other characters. */

/** The first character of a token that no header can carry, and its place from 1; else null. */
export function strangeIn(token) {
  const found = NO_HEADER_HAS.exec(token);
  return found && { char: found[0], place: [...token.slice(0, found.index)].length + 1 };
}

/** The token that is kept; null where there is none that could be sent. */
export function readToken() {
  const token = sessionStorage.getItem(KEY);
  return token && !strangeIn(token) ? token : null;
}

export const keepToken = (token) => sessionStorage.setItem(KEY, token);

export const forgetToken = () => sessionStorage.removeItem(KEY);
