// A table with roles in its markup: narrow screens draw its rows as cards, and to a screen reader they must stay rows.

import { h } from "./dom.js";
import { Rows } from "./rows.js";

/** @import { Cell, Column } from "./types.d.ts" */

/**
 * Make a table of columns `{label, className?, width?, cell() -> {element, fill(row)}}`. Returns it and `show(rows)`.
 *
 * @template Row
 * @param {{ caption: string, columns: Column<Row>[], key: (row: Row) => unknown, light?: boolean }} wanted
 */
export function table({ caption, columns, key, light = false }) {
  const body = h("tbody", { role: "rowgroup" });
  const head = h("tr", { role: "row" }, columns.map(heading));
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
  return { element, body, show: (/** @type {Row[]} */ list) => rows.show(list) };
}

/** @param {Column<any>} column */
function heading({ label, className, width, about }) {
  const element = h("th", { role: "columnheader", scope: "col", class: className, title: about }, label);
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
