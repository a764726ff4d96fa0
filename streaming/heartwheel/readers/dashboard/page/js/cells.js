// Cells that several tables share. Each is made once and filled again and again: see rows.js.

import { pathOf } from "./api.js";
import { h, mark, put, write } from "./dom.js";
import { clock, count, utc } from "./format.js";
import { icon } from "./icons.js";
import { troubleKind } from "./words.js";

/** @import { Group } from "answers" */
/** @import { Cell, LineTexts, LinkTexts, TagWords } from "./types.d.ts" */

/**
 * Two lines: the main text, and its details. `read(row)` gives `{first, second, title?, titleSecond?}`.
 *
 * @template Row
 * @param {(row: Row) => LineTexts} read
 * @param {{ mono?: boolean }} [options]
 * @returns {Cell<Row>}
 */
export function twoLines(read, { mono = false } = {}) {
  const first = h("span", { class: `line strong${mono ? " mono" : ""}` });
  const second = h("span", { class: "line second" });
  const fill = (/** @type {Row} */ row) => {
    const texts = read(row);
    write(first, texts.first);
    write(second, texts.second ?? "");
    mark(first, "title", texts.title ?? null);
    mark(second, "title", texts.titleSecond ?? null);
  };
  return { element: h("div", {}, first, second), fill };
}

/**
 * A link over a line of text. `read(row)` gives `{href, first, second, titleSecond?}`.
 *
 * @template Row
 * @param {(row: Row) => LinkTexts} read
 * @returns {Cell<Row>}
 */
export function linked(read) {
  const link = h("a", { class: "mono" });
  const second = h("span", { class: "line second" });
  const fill = (/** @type {Row} */ row) => {
    const texts = read(row);
    write(link, texts.first);
    mark(link, "href", texts.href);
    mark(link, "title", texts.first);
    write(second, texts.second ?? "");
    mark(second, "title", texts.titleSecond ?? texts.second ?? null);
  };
  return { element: h("div", {}, h("span", { class: "line" }, link), second), fill };
}

/**
 * A tag of an icon and a word. `read(row)` gives `{icon, label, tone, title}`, or null for none.
 *
 * @template Row
 * @param {(row: Row) => TagWords | null} read
 * @returns {Cell<Row>}
 */
export function tagged(read) {
  const element = h("span");
  /** @type {string | null} */
  let shown = null;
  const fill = (/** @type {Row} */ row) => {
    const words = read(row);
    const key = words ? `${words.icon} ${words.label} ${words.tone} ${words.title}` : null;
    if (key === shown) return;
    shown = key;
    put(element, words ? tag(words) : null);
  };
  return { element, fill };
}

/**
 * How often members of a group were expired, and below it the group's troubles.
 *
 * @returns {Cell<Group>}
 */
export function expiredAndTroubles() {
  const line = twoLines((/** @type {Group} */ group) => ({ first: count(group.expirations), second: "" }));
  const badge = tagged((/** @type {Group} */ { troubles: [worst, ...more] }) =>
    worst
      ? {
          ...troubleKind(worst.kind),
          label: `${troubleKind(worst.kind).label}${more.length ? ` +${more.length}` : ""}`,
          title: [worst, ...more].map((each) => each.words).join("\n"),
        }
      : null,
  );
  return { element: h("div", {}, line.element, badge.element), fill: (group) => (line.fill(group), badge.fill(group)) };
}

/**
 * A tag by itself.
 *
 * @param {TagWords} words
 */
export const tag = ({ icon: name, label, tone = "calm", title }) =>
  h("span", { class: `tag tone-${tone}`, title }, icon(name), label);

/**
 * A time of day with UTC in its title.
 *
 * @param {number} ms
 * @param {{ tenths?: boolean }} [options]
 */
export const time = (ms, options) =>
  h("time", { datetime: ms >= 0 ? new Date(ms).toISOString() : null, title: utc(ms) }, clock(ms, options));

/** @param {string} group */
export const groupHref = (group) => `/groups${pathOf(group)}`;
/**
 * @param {string} group
 * @param {string} member
 */
export const memberHref = (group, member) => `/members${pathOf(group, member)}`;
