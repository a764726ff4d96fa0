// The base path of this dashboard: behind a proxy it may be a path such as "/heartwheel". Everywhere else paths begin
// with "/".

const meta = /** @type {HTMLMetaElement | null} */ (document.querySelector('meta[name="heartwheel-base"]'));
const base = meta?.content ?? "";

/**
 * The address of a path of this dashboard.
 *
 * @param {string} path
 */
export const at = (path) => base + path;

/**
 * The path of an address of this dashboard, the inverse of the function above.
 *
 * @param {string} address
 */
export const within = (address) =>
  address === base ? "/" : address.startsWith(`${base}/`) ? address.slice(base.length) : address;

let leaving = false;
// The browser may show this page again as it was left.
addEventListener("pageshow", () => {
  leaving = false;
});

/** Go to the login, if there is one, and come back here. A second call would abort the way there that the first has begun. */
export function logIn() {
  if (leaving) return;
  leaving = true;
  const here = within(location.pathname) + location.search;
  location.assign(at(`/login?next=${encodeURIComponent(here)}`));
}
