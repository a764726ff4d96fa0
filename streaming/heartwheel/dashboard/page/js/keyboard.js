// Keys that work on every page: "/" goes to the filter, Escape leaves it, or closes a detail view.

const TYPING = "input, select, textarea";

/**
 * Listen for the keys. `escape` is called for an Escape that no field has use for.
 *
 * @param {() => unknown} escape
 */
export function keyboard(escape) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
    const target = /** @type {HTMLElement} */ (event.target);
    const typing = target.matches?.(TYPING);
    if (event.key === "/" && !typing) focusFilter(event);
    if (event.key === "Escape") typing ? target.blur() : escape();
  });
}

/** @param {KeyboardEvent} event */
function focusFilter(event) {
  const field = /** @type {HTMLInputElement | null} */ (document.querySelector("[data-filter]"));
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
}
