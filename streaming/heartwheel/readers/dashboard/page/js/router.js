// The page of an address. The address contains the page and its filters, so it can be kept, shared and returned to.

import { segmentOf } from "./api.js";
import { at, within } from "./base.js";

/** @import { Page } from "./types.d.ts" */

/** @typedef {[RegExp | null, Page][]} Routes */
/** @typedef {(page: Page, args: string[], how: { moved: boolean }) => void} Show */

/** Routes are `[pattern, page]`; the groups of a pattern are percent-decoded and passed to the page. */
export class Router {
  #routes;
  #show;

  /**
   * @param {Routes} routes
   * @param {Show} show
   */
  constructor(routes, show) {
    this.#routes = routes;
    this.#show = show;
    addEventListener("popstate", () => this.#render({ moved: false }));
    document.addEventListener("click", (event) => this.#click(event));
  }

  start() {
    this.#render({ moved: false });
  }

  /**
   * Go to a path of this dashboard.
   *
   * @param {string} path
   */
  go(path) {
    history.pushState({ inner: true }, "", at(path));
    this.#render({ moved: true });
  }

  /**
   * Go back to the previous page, or to a given address if the reader began on this one.
   *
   * @param {string} fallback
   */
  back(fallback) {
    if (history.state?.inner) history.back();
    else this.go(fallback);
  }

  get query() {
    return new URLSearchParams(location.search);
  }

  /**
   * Keep filters in the address, the empty ones left out; `push` makes a step to go back by.
   *
   * @param {Record<string, string>} filters
   * @param {{ push?: boolean }} [options]
   */
  keep(filters, { push = false } = {}) {
    const search = new URLSearchParams(Object.entries(filters).filter(([, value]) => value));
    const url = search.size ? `${location.pathname}?${search}` : location.pathname;
    if (url === location.pathname + location.search) return;
    if (push) history.pushState({ inner: true }, "", url);
    else history.replaceState(history.state, "", url);
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const target = /** @type {Element} */ (event.target);
    const link = /** @type {HTMLAnchorElement | null | undefined} */ (target.closest?.("a[href]"));
    if (
      !link ||
      event.defaultPrevented ||
      event.button ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || link.hasAttribute("download") || link.target || !this.#match(within(url.pathname)))
      return;
    if (url.hash) return;
    event.preventDefault();
    this.go(within(url.pathname) + url.search);
  }

  /** @param {{ moved: boolean }} how */
  #render({ moved }) {
    const [, last] = this.#routes[this.#routes.length - 1];
    const found = this.#match(within(location.pathname)) ?? { page: last, args: [] };
    this.#show(found.page, found.args, { moved });
  }

  /** @param {string} path */
  #match(path) {
    for (const [pattern, page] of this.#routes) {
      const match = pattern?.exec(path);
      if (match) return { page, args: match.slice(1).map(decoded) };
    }
    return null;
  }
}

/** @param {string} segment */
function decoded(segment) {
  try {
    return segmentOf(decodeURIComponent(segment));
  } catch {
    return segment; // a stray percent sign in an address typed by hand
  }
}
