// Puts the page together: the connection, the frame around every page, and the page that the address names.

import { announcer } from "./announce.js";
import { byId, put } from "./dom.js";
import { keyboard } from "./keyboard.js";
import { atRiskPage } from "./pages/at_risk.js";
import { expiredPage } from "./pages/expired.js";
import { groupPage } from "./pages/group.js";
import { groupsPage } from "./pages/groups.js";
import { memberPage } from "./pages/member.js";
import { missingPage } from "./pages/missing.js";
import { nowPage } from "./pages/now.js";
import { rebalancesPage } from "./pages/rebalances.js";
import { timelinePage } from "./pages/timeline.js";
import { wheelPage } from "./pages/wheel.js";
import { Router } from "./router.js";
import { frame } from "./shell.js";
import { Stream } from "./stream.js";

/** @import { Page } from "./types.d.ts" */

/** @type {[RegExp | null, Page][]} */
const ROUTES = [
  [/^\/$/, nowPage],
  [/^\/expired\/?$/, expiredPage],
  [/^\/groups\/?$/, groupsPage],
  [/^\/groups\/([^/]+)$/, groupPage],
  [/^\/members\/([^/]+)\/([^/]+)$/, memberPage],
  [/^\/rebalances\/?$/, rebalancesPage],
  [/^\/timeline\/?$/, timelinePage],
  [/^\/at-risk\/?$/, atRiskPage],
  [/^\/wheel\/?$/, wheelPage],
  [null, missingPage],
];

const main = byId("main");
const stream = new Stream();
/** @type {{ abort: AbortController, escape?: string } | null} */
let mounted = null;

/**
 * Replace the page by another one. The page's listeners and requests end by the signal that it gets.
 *
 * @param {Page} page
 * @param {string[]} args
 * @param {{ moved: boolean }} how
 */
function show(page, args, { moved }) {
  mounted?.abort.abort();
  mounted = { abort: new AbortController(), escape: page.escape };
  put(main);
  document.title = `${page.title(...args)} · heartwheel`;
  frameOf.select(page.tab);
  page.mount(main, { args, router, stream, signal: mounted.abort.signal });
  if (!moved) return;
  scrollTo(0, 0);
  main.querySelector("h1")?.focus({ preventScroll: true });
}

const router = new Router(ROUTES, show);
const frameOf = frame(stream);
keyboard(() => mounted?.escape && router.back(mounted.escape));
announcer(byId("announcer"), stream);
router.start();
if (!stream.started) stream.open(); // page Wheel has opened it already, with its shard
