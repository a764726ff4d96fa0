// The common parts of lists of groups: filters kept in the address, and a list that follows the stream.

import { filterField } from "./filter_field.js";
import { loader } from "./loader.js";
import { throttled } from "./throttle.js";

/** @import { Visit } from "./types.d.ts" */

/**
 * Make the filters and the loading of a list: `change` sets filters and loads, `again` reloads within a short time.
 *
 * @template Answer
 * @param {Pick<Visit, "router" | "stream" | "signal">} visit
 * @param {object} wanted
 * @param {readonly string[]} wanted.names of the filters, `text` among them
 * @param {(filters: Record<string, string>) => Promise<Answer>} wanted.ask
 * @param {(answer: Answer, filters: Record<string, string>) => unknown} wanted.show
 * @param {HTMLElement} wanted.place where the words of an error are put
 */
export function groupList({ router, stream, signal }, { names, ask, show, place }) {
  const filters = Object.fromEntries(names.map((name) => [name, router.query.get(name) ?? ""]));
  const load = loader({ ask: () => ask(filters), show: (answer) => show(answer, filters), place });
  const change = (/** @type {Record<string, string>} */ changed) => {
    Object.assign(filters, changed);
    router.keep(filters);
    load();
  };
  const again = throttled(load, 1_500, signal);
  stream.addEventListener("reload", again, { signal });
  const words = { value: filters.text, placeholder: "Group", label: "Filter by group" };
  const field = filterField({ ...words, changed: (text) => change({ text }), signal });
  return { filters, change, again, field };
}
