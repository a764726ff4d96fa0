// The newest few expirations on page Now.

import { h, put } from "../dom.js";
import { Expirations } from "../expirations.js";
import { EXPIRATION_COLUMNS } from "../expiration_columns.js";
import { failed, noneExpired } from "../states.js";
import { table } from "../table.js";

/** @import { Expiration } from "answers" */
/** @import { Following } from "../types.d.ts" */

const ROWS = 6;

/**
 * Make the panel; it loads by itself and then follows the stream.
 *
 * @param {Following} visit
 */
export function latest({ stream, signal }) {
  const rows = table({
    caption: "The newest expirations",
    columns: EXPIRATION_COLUMNS,
    key: (/** @type {Expiration} */ row) => row.id,
    light: true,
  });
  const body = h("div");
  const element = h(
    "section",
    { class: "panel flush" },
    h(
      "div",
      { class: "panel-head" },
      h("h2", {}, "Expired last"),
      h("a", { class: "small", href: "/expired" }, "All expired members"),
    ),
    body,
  );
  const changed = () => {
    if (!list.rows.length)
      return put(body, noneExpired(stream.now));
    if (rows.element.parentNode !== body) put(body, rows.element);
    return rows.show(list.rows);
  };
  /** @type {Expirations} */
  const list = new Expirations({ stream, signal, limit: ROWS, changed, failed: (error) => put(body, failed(error)) });
  list.choose({});
  stream.addEventListener("now", () => list.loaded && !list.rows.length && changed(), { signal });
  return { element };
}
