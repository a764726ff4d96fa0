// The list of expirations that a page shows: the newest of those that pass the filters, updated from the stream.

import { get, isAborted } from "./api.js";
import { throttled } from "./throttle.js";

/** @import { Expiration, NewExpirations, NewReturn } from "answers" */
/** @import { Following } from "./types.d.ts" */

/** Follow the newest expirations. `changed()` is called when the list has changed, `failed(error)` on an error. */
export class Expirations {
  #signal;
  #changed;
  #failed;
  #ask;
  /** @type {Record<string, string>} */
  #filters = {};
  #asked = 0;
  /** @type {Expiration[]} */
  rows = [];
  matched = 0;
  total = 0;
  /** @type {string | null} */
  next = null;
  /** @type {number | null} */
  olderUntil = null;
  skipped = 0;
  arrived = 0;
  loaded = false;

  /** @param {Following & { limit: number, changed: () => unknown, failed: (error: unknown) => unknown }} wanted */
  constructor({ stream, signal, limit, changed, failed }) {
    this.limit = limit;
    this.#signal = signal;
    this.#changed = changed;
    this.#failed = failed;
    this.#ask = throttled(() => this.load(), 1_000, signal);
    stream.addEventListener("expirations", ({ detail }) => this.#hear(detail), { signal });
    stream.addEventListener("returned", ({ detail }) => this.#mark(detail), { signal });
    stream.addEventListener("reload", () => this.#ask(), { signal });
  }

  /**
   * Request the rows for other filters; `before` is a cursor to older ones, which do not follow the stream.
   *
   * @param {Record<string, string>} filters
   */
  choose(filters) {
    this.#filters = filters;
    return this.load();
  }

  /** Ask the server, because only it knows which rows match. Rows that the stream brought meanwhile are kept. */
  async load() {
    const asked = ++this.#asked;
    const early = this.#plain ? this.rows : [];
    try {
      const answer = await get("/api/expirations", { ...this.#filters, limit: this.limit }, { signal: this.#signal });
      if (asked !== this.#asked) return;
      const known = answer.rows[0]?.seq ?? -1;
      const newer = this.#plain ? this.rows.filter((row) => row.seq > known && !early.includes(row)) : [];
      this.rows = [...newer, ...answer.rows].slice(0, this.limit);
      Object.assign(this, {
        matched: answer.matched + newer.length,
        total: answer.total + newer.length,
        next: answer.next,
        olderUntil: answer.older_until_ms,
        loaded: true,
      });
      this.#changed();
    } catch (error) {
      if (!isAborted(error) && asked === this.#asked) this.#failed(error);
    }
  }

  get #plain() {
    return Object.values(this.#filters).every((value) => !value);
  }

  /** @param {NewExpirations} news */
  #hear({ rows, skipped }) {
    this.arrived += rows.length + skipped;
    if (this.#filters.before) return;
    if (!this.#plain) return this.#ask();
    const known = new Set(this.rows.map(({ id }) => id));
    const fresh = rows.filter(({ id }) => !known.has(id));
    this.skipped += skipped;
    this.rows = [...fresh, ...this.rows].slice(0, this.limit);
    this.matched += fresh.length + skipped;
    this.total += fresh.length + skipped;
    if (skipped && rows.length < this.limit) this.#ask();
    this.#changed();
  }

  /** @param {NewReturn[]} returned */
  #mark(returned) {
    const changes = new Map(returned.map((change) => [change.id, change]));
    if (!this.rows.some(({ id }) => changes.has(id))) return;
    this.rows = this.rows.map((row) => ({ ...row, ...changes.get(row.id) }));
    this.#changed();
  }
}
