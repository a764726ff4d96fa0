// The one connection to the server's events. It resumes by itself: after a short break the browser sends the last id it
// saw, and the server continues there. Only when that is impossible do pages load again (`reload`).

import { get, query } from "./api.js";
import { at } from "./base.js";

/** @import { Hello, Now, StreamEvents } from "answers" */
/** @import { Events } from "./types.d.ts" */

/** @type {(keyof StreamEvents)[]} */
const EVENTS = ["hello", "now", "expirations", "returned", "groups", "at_risk", "wheel", "series", "gap"];

/** After this long without an event the connection counts as lost: the server sends one each second. */
const QUIET_MS = 4_000;

/** After this long a new one is opened: a connection whose other end has vanished never reports an error. */
const HUNG_MS = 15_000;

/** Events: the server's, with their data in `detail`; `reload`: what is shown may have gaps; `link`: see `lost`. */
export class Stream extends EventTarget {
  /** @type {EventSource | null} */
  #source = null;
  /** @type {Record<string, unknown>} */
  #params = {};
  /** @type {string | null} */
  #epoch = null;
  #retry = 0;
  #skewMs = 0;
  /** @type {Now | null} */
  now = null;
  /** @type {number | null} */
  lastEventMs = null;
  openedMs = Date.now();
  lost = false;

  /**
   * Listen to an event, with its data in `detail`.
   *
   * @template {keyof Events} Name
   * @param {Name} name
   * @param {((event: CustomEvent<Events[Name]>) => unknown) | EventListenerObject | null} listener
   * @param {AddEventListenerOptions} [options]
   */
  addEventListener(name, listener, options) {
    super.addEventListener(name, /** @type {EventListener} */ (listener), options);
  }

  /**
   * Connect, or connect again to receive other events, such as another shard's wheel.
   *
   * @param {Record<string, unknown>} [params]
   */
  open(params = this.#params) {
    this.#params = params;
    this.#source?.close();
    clearTimeout(this.#retry);
    this.openedMs = Date.now();
    this.#epoch = null; // a new connection knows no last id, so there may be a gap before it
    this.#source = new EventSource(at(`/api/stream${query(params)}`));
    for (const name of EVENTS) this.#source.addEventListener(name, (event) => this.#hear(name, event));
    this.#source.addEventListener("error", () => this.#broken());
  }

  /** Check whether the connection is quiet or hangs; the page calls this a few times a second. */
  watch() {
    const quiet = Date.now() - Math.max(this.lastEventMs ?? 0, this.openedMs);
    if (quiet > HUNG_MS) this.open();
    this.#tell(quiet > QUIET_MS || (this.lost && this.#source?.readyState !== EventSource.OPEN));
  }

  /** Whether it was ever opened. */
  get started() {
    return this.#source !== null;
  }

  /** The server's clock, epoch ms: countdowns must not depend on how the reader's clock is set. */
  serverMs() {
    return Date.now() + this.#skewMs;
  }

  /** Since when no engine processes members and groups, epoch ms: what is shown is of that time. Null while one does. */
  get asOfMs() {
    const engine = this.now?.health.as_of_ms ?? null;
    if (!this.lost) return engine;
    const lastEvent = (this.lastEventMs ?? this.openedMs) + this.#skewMs;
    return engine === null ? lastEvent : Math.min(engine, lastEvent);
  }

  /**
   * @param {keyof StreamEvents} name
   * @param {MessageEvent<string>} event
   */
  #hear(name, event) {
    this.lastEventMs = Date.now();
    const detail = JSON.parse(event.data);
    this.#tell(false);
    if (name === "hello") this.#greet(detail);
    if (name === "now") this.#remember(detail);
    if (name === "gap") this.dispatchEvent(new CustomEvent("reload"));
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  /** @param {Hello} hello */
  #greet({ epoch, now }) {
    const resumed = epoch === this.#epoch;
    this.#epoch = epoch;
    if (now) this.#remember(now);
    if (now) this.dispatchEvent(new CustomEvent("now", { detail: now }));
    if (!resumed) this.dispatchEvent(new CustomEvent("reload"));
  }

  /** @param {Now} now */
  #remember(now) {
    this.now = now;
    this.#skewMs = now.at_ms - Date.now();
  }

  #broken() {
    this.#tell(true);
    if (this.#source?.readyState !== EventSource.CLOSED) return; // the browser tries again
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.open(), 2_000);
    get("/api/now").catch(() => {}); // if the session has ended, this leads to the login
  }

  /** @param {boolean} lost */
  #tell(lost) {
    if (lost === this.lost) return;
    this.lost = lost;
    this.dispatchEvent(new CustomEvent("link"));
  }
}
