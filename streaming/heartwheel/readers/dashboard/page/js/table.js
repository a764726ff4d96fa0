// A table with roles in its markup: narrow screens show its rows as cards, and for a screen reader they must stay rows.

import { h, mark } from "./dom.js";
import { Rows } from "./rows.js";

/** @import { Cell, Column } from "./types.d.ts" */

/**
 * Make a table of columns `{label, className?, width?, cell() -> {element, fill(row)}}`. Returns it and `show(rows)`.
 * With `sort` a column that has an order has a button in its head: it is called with that order.
 *
 * @template Row
 * @param {object} wanted
 * @param {string} wanted.caption
 * @param {Column<Row>[]} wanted.columns
 * @param {(row: Row) => unknown} wanted.key
 * @param {boolean} [wanted.light]
 * @param {(order: string) => unknown} [wanted.sort]
 */
export function table({ caption, columns, key, light = false, sort }) {
  const body = h("tbody", { role: "rowgroup" });
  const heads = columns.map((column) => heading(column, sort));
  const head = h("tr", { role: "row" }, heads);
  const order = (/** @type {string} */ name) =>
    columns.forEach((column, at) =>
      mark(heads[at], "aria-sort", column.order ? (column.order === name ? "descending" : "none") : null),
    );
  const element = h(
    "table",
    { class: "table", role: "table" },
    h("caption", { class: "visually-hidden" }, caption),
    h("thead", { role: "rowgroup" }, head),
    body,
  );
  const rows = new Rows(body, {
    key,
    light,
    make: () => make(columns),
    fill: ({ cells }, row) => cells.forEach((cell) => cell.fill(row)),
  });
  return { element, body, order, show: (/** @type {Row[]} */ list) => rows.show(list) };
}

/**
 * @param {Column<any>} column
 * @param {((order: string) => unknown) | undefined} sort
 */
function heading({ label, className, width, about, order }, sort) {
  const shown =
    sort && order
      ? h("button", { type: "button", class: "sort", title: "Order by this column", onclick: () => sort(order) }, label)
      : label;
  const element = h("th", { role: "columnheader", scope: "col", class: className, title: about }, shown);
  if (width) element.style.width = width;
  return element;
}

/**
 * @template Row
 * @param {Column<Row>[]} columns
 * @returns {{ element: HTMLElement, cells: Cell<Row>[] }}
 */
function make(columns) {
  const cells = columns.map(({ cell }) => cell());
  const element = h(
    "tr",
    { role: "row" },
    cells.map((cell, at) =>
      h("td", { role: "cell", class: columns[at].className, dataset: { label: columns[at].label } }, cell.element),
    ),
  );
  return { element, cells };
}
