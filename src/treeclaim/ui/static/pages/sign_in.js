// SPDX-License-Identifier: Apache-2.0
/** The form for the token. */

import { authentication } from "../api/client.js";
import { html, useEffect, useRef, useState } from "../components/html.js";

const SENDABLE = "[ -~]*[!-~][ -~]*";
/* Headers are ASCII (RFC 9110, section 5.5), and browsers throw at most other characters. */

export function SignInPage({ isRefused, onToken }) {
  const [about, setAbout] = useState(null);
  const field = useRef(null);
  useEffect(() => {
    authentication().then((found) => {
      setAbout(found);
      if (found.isNoauth && field.current && !field.current.value) field.current.value = "admin";
    });
    field.current?.focus();
  }, []);
  const submit = (event) => {
    event.preventDefault();
    onToken(field.current.value.trim());
  };
  return html`<section class="sign-in">
    <h1 tabindex="-1">Look at your cloud</h1>
    <p>These pages show what the service's API gives to <em>your</em> token: trees of resource
      providers, how full they are, what fits where, and why something does not.</p>
    ${isRefused && html`<p class="notice failure" role="alert">
      The server refused this token. It may have expired.</p>`}
    <form onSubmit=${submit}>
      <label for="token">Token</label>
      <input id="token" ref=${field} type="password" autocomplete="off" spellcheck=${false} required
        pattern=${SENDABLE} title="A token has letters, digits and signs of ASCII only." />
      <button type="submit" class="primary">Show the cloud</button>
    </form>
    <${Hint} about=${about} />
    <p class="fine">The token stays in this tab. It is in no address and no cookie, and goes with
      the tab.</p>
  </section>`;
}

function Hint({ about }) {
  if (!about) return null;
  if (!about.reached) return html`<p class="hint" role="alert">The server does not answer.</p>`;
  if (about.isNoauth) {
    return html`<p class="hint">This service believes every caller
      (<code>auth_strategy = noauth2</code>): the token <code>admin</code> sees all,
      ${" "}<code>USER:PROJECT</code> is anybody else.</p>`;
  }
  const { keystone } = about;
  return html`<p class="hint">A token of Keystone${keystone && html` at <code>${keystone}</code>`}:
    ${" "}<code>openstack token issue -f value -c id</code></p>`;
}
