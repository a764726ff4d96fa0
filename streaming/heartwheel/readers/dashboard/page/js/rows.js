// A list of rows that stay on the page as long as they are in the data: elements are kept by key and used again, so
// that a thousand new rows a second make no garbage.

/**
 * How rows are identified, made and filled.
 *
 * @template Row
 * @template {{ element: HTMLElement }} Parts
 * @typedef {object} Recipe
 * @property {(row: Row) => unknown} key
 * @property {() => Parts} make
 * @property {(parts: Parts, row: Row) => unknown} fill
 * @property {boolean} [light]
 */

/**
 * The rows of one parent element.
 *
 * `make` returns a new element's parts, with the element itself as `element`; `fill` writes a row's data into them;
 * with `light`, new rows light up if they are few.
 *
 * @template Row
 * @template {{ element: HTMLElement }} Parts
 */
export class Rows {
  #parent;
  #key;
  #make;
  #fill;
  #light;
  /** @type {Map<unknown, { parts: Parts, element: HTMLElement, row: Row | null }>} */
  #shown = new Map();

  /**
   * @param {HTMLElement} parent
   * @param {Recipe<Row, Parts>} recipe
   */
  constructor(parent, { key, make, fill, light }) {
    this.#parent = parent;
    this.#key = key;
    this.#make = make;
    this.#fill = fill;
    this.#light = light;
  }

  /**
   * Show exactly these rows, in this order. Rows that are the same object as before are not written again.
   *
   * @param {Row[]} rows
   */
  show(rows) {
    const wanted = new Map(rows.map((row) => [this.#key(row), row]));
    const free = [...this.#shown].filter(([key]) => !wanted.has(key)).map(([, entry]) => entry);
    const next = new Map();
    const few = this.#light && this.#shown.size > 0 && wanted.size - (this.#shown.size - free.length) <= 10;
    for (const key of wanted.keys()) next.set(key, this.#shown.get(key) ?? this.#recycled(free.shift(), few));
    for (const { element } of free) element.remove();
    let place = this.#parent.firstElementChild;
    for (const [key, entry] of next) {
      const row = /** @type {Row} */ (wanted.get(key));
      if (entry.row !== row) this.#fill(entry.parts, row);
      entry.row = row;
      if (entry.element === place) place = entry.element.nextElementSibling;
      else this.#parent.insertBefore(entry.element, place);
    }
    this.#shown = next;
  }

  /**
   * @param {{ parts: Parts } | undefined} entry
   * @param {boolean | undefined} fresh
   * @returns {{ parts: Parts, element: HTMLElement, row: Row | null }}
   */
  #recycled(entry, fresh) {
    const parts = entry?.parts ?? this.#make();
    parts.element.classList.toggle("fresh", fresh);
    return { parts, element: parts.element, row: null };
  }
}
