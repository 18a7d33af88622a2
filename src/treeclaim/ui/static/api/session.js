// SPDX-License-Identifier: Apache-2.0
/** The token of this tab. It is in no address, in no cookie, and gone with the tab. */

const KEY = "treeclaim.token";

export const readToken = () => sessionStorage.getItem(KEY);

export const keepToken = (token) => sessionStorage.setItem(KEY, token);

export const forgetToken = () => sessionStorage.removeItem(KEY);
