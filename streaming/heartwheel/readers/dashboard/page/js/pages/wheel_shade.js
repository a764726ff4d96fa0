// How full a slot is, as a shade, a short number and a flash.

/**
 * Shades run from 0, empty, to 5, the fullest slot of its level; the square root keeps small numbers distinguishable.
 *
 * @param {number} timers
 * @param {number} most
 */
export const shade = (timers, most) => (timers ? 1 + Math.min(4, Math.floor(Math.sqrt(timers / most) * 4.999)) : 0);

/**
 * Format a number in three characters at most: 999, 1k, 12k, 1m.
 *
 * @param {number} timers
 */
export function short(timers) {
  if (timers < 1_000) return String(timers);
  if (timers < 999_500) return `${Math.round(timers / 1_000)}k`;
  return `${Math.round(timers / 1_000_000)}m`;
}

/**
 * Make a slot flash once.
 *
 * @param {Element} element
 */
export const flash = (element) =>
  element.animate?.([{ filter: "brightness(1.9) saturate(1.6)" }, { filter: "none" }], {
    duration: 700,
    easing: "ease-out",
  });
