// SPDX-License-Identifier: Apache-2.0
/** The frame around the pages: navigation, the signed-in user, and the state of the connection. */

import { Client, ENDPOINT } from "./api/client.js";
import {
  Session, html, render, useCallback, useEffect, useMemo, useRef, useState,
} from "./components/html.js";
import { Heading } from "./components/layout.js";
import { Empty } from "./components/notices.js";
import { AskPage } from "./pages/ask.js";
import { AuditPage } from "./pages/audit.js";
import { CloudPage } from "./pages/cloud.js";
import { ConsumersPage } from "./pages/consumers.js";
import { FitPage } from "./pages/fit.js";
import { PlanPage } from "./pages/plan.js";
import { SignInPage } from "./pages/sign_in.js";
import { SurvivalPage } from "./pages/survival.js";
import { TreePage } from "./pages/tree.js";
import { address, readRoute } from "./routes.js";

const PAGES = new Map([
  ["cloud", { title: "Cloud", show: CloudPage }],
  ["tree", { title: "Tree", show: TreePage, hasItems: true }],
  ["ask", { title: "Ask", show: AskPage }],
  ["fit", { title: "Fit", show: FitPage }],
  ["survival", { title: "Survival", show: SurvivalPage }],
  ["plan", { title: "Plan", show: PlanPage }],
  ["consumers", { title: "Consumers", show: ConsumersPage, hasItems: true }],
  ["audit", { title: "Audit", show: AuditPage }],
]);

const NOWHERE = { title: "No such place", show: () => html`<${Heading} title="No such place" />
  <${Empty} title="There is no page at this address">
    <p><code>${location.hash}</code> may have been cut when it was copied.
      ${" "}<a href=${address("cloud")}>The cloud</a></p><//>` };

const TOKEN = "treeclaim.token";
/* The key of the token, which is kept in this tab alone, and in no address and no cookie. */

const RETRY_PAUSE = 2_000;
/* Milliseconds between two attempts to reach a lost server. */

function App() {
  const route = useRoute();
  const [token, setToken] = useState(sessionStorage.getItem(TOKEN));
  const [isRefused, setRefused] = useState(false);
  const { isLost, revision, listener } = useServer();

  const signIn = (entered) => {
    sessionStorage.setItem(TOKEN, entered);
    setRefused(false);
    setToken(entered);
  };
  const signOut = useCallback(() => {
    sessionStorage.removeItem(TOKEN);
    setToken(null);
  }, []);
  const api = useMemo(() => token && new Client(token, {
    ...listener,
    refused: () => {
      setRefused(true);
      signOut();
    },
  }), [token]);
  const session = useMemo(() => ({ api, revision }), [api, revision]);

  const page = pageAt(route);
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header class="shell">
      <a class="brand" href=${address("cloud")}>
        <img src="icon.svg" alt="" width="26" height="26" />Treeclaim</a>
      ${api && html`<${Navigation} current=${route.page} />
        <button type="button" class="quiet sign-out" onClick=${signOut}>Sign out</button>`}
    </header>
    ${isLost && html`<${Lost} />`}
    <main id="main" tabindex="-1">
      ${api
        ? html`<${Session.Provider} value=${session}>
            <${page.show} key=${page.title} route=${route} /><//>`
        : html`<${SignInPage} isRefused=${isRefused} onToken=${signIn} />`}
    </main>
    <${Title} page=${api ? page.title : "Sign in"} />`;
}

/** The page at an address, which may name an item of it. */
function pageAt({ page: name, item }) {
  const page = PAGES.get(name);
  return page && item !== null && (page.hasItems || !item) ? page : NOWHERE;
}

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function Navigation({ current }) {
  return html`<nav aria-label="Pages"><ul>
    ${[...PAGES].map(([name, { title }]) => html`<li key=${name}>
      <a href=${address(name)} aria-current=${name === current ? "page" : null}>${title}</a></li>`)}
  </ul></nav>`;
}

function Lost() {
  return html`<div class="notice lost" role="alert">
    <strong>The server does not answer.</strong> The page may be outdated.
    It retries every ${RETRY_PAUSE / 1000} seconds.
  </div>`;
}

/** Sets the title of the tab, and moves the focus to the new page for screen readers. */
function Title({ page }) {
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${page} · Treeclaim`;
    if (!isFirst.current) document.querySelector("main h1")?.focus();
    isFirst.current = false;
  }, [page]);
  return null;
}

function useRoute() {
  const [route, setRoute] = useState(readRoute());
  useEffect(() => {
    const change = () => setRoute(readRoute());
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return route;
}

/** Whether the server answers; `revision` counts how often it came back. */
function useServer() {
  const [isLost, setLost] = useState(false);
  const [revision, setRevision] = useState(0);
  const listener = useMemo(
    () => ({ lost: () => setLost(true), answered: () => setLost(false) }), []);
  useEffect(() => {
    if (!isLost) return undefined;
    let isOver = false;
    const retry = async () => {
      const answer = await fetch(`${ENDPOINT}/treeclaim`, { cache: "no-store" }).catch(() => null);
      if (isOver) return;
      if (answer?.ok) {
        setLost(false);
        setRevision((before) => before + 1);
      } else {
        timer = setTimeout(retry, RETRY_PAUSE);
      }
    };
    let timer = setTimeout(retry, RETRY_PAUSE);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [isLost]);
  return { isLost, revision, listener };
}

render(html`<${App} />`, document.getElementById("app"));
