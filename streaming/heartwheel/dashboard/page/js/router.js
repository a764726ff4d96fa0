// Which page the address names. The address holds the page and its filters, so it can be kept, shared and gone back to.

import { segmentOf } from "./api.js";
import { at, within } from "./base.js";

/** Routes are `[pattern, page]`; the groups of a pattern are percent-decoded and handed to the page. */
export class Router {
  #routes;
  #show;

  constructor(routes, show) {
    this.#routes = routes;
    this.#show = show;
    addEventListener("popstate", () => this.#render({ moved: false }));
    document.addEventListener("click", (event) => this.#click(event));
  }

  start() {
    this.#render({ moved: false });
  }

  /** Go to a path of this dashboard. */
  go(path) {
    history.pushState({ inner: true }, "", at(path));
    this.#render({ moved: true });
  }

  /** Go back to where the reader came from, or, if it was opened right here, to a given address. */
  back(fallback) {
    if (history.state?.inner) history.back();
    else this.go(fallback);
  }

  get query() {
    return new URLSearchParams(location.search);
  }

  /** Keep filters in the address, the empty ones left out; `push` makes a step to go back by. */
  keep(filters, { push = false } = {}) {
    const search = new URLSearchParams(Object.entries(filters).filter(([, value]) => value));
    const url = search.size ? `${location.pathname}?${search}` : location.pathname;
    if (url === location.pathname + location.search) return;
    if (push) history.pushState({ inner: true }, "", url);
    else history.replaceState(history.state, "", url);
  }

  #click(event) {
    const link = event.target.closest?.("a[href]");
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

  #render({ moved }) {
    const found = this.#match(within(location.pathname)) ?? { page: this.#routes.at(-1)[1], args: [] };
    this.#show(found.page, found.args, { moved });
  }

  #match(path) {
    for (const [pattern, page] of this.#routes) {
      const match = pattern?.exec(path);
      if (match) return { page, args: match.slice(1).map(decoded) };
    }
    return null;
  }
}

function decoded(segment) {
  try {
    return segmentOf(decodeURIComponent(segment));
  } catch {
    return segment; // a stray percent sign in an address typed by hand
  }
}
