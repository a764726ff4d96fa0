// Questions to the server. What went wrong comes back as words for people: what, and what to do.

import { at, logIn } from "./base.js";

export class ApiError extends Error {
  constructor(message, hint = "", status = 0) {
    super(message);
    this.hint = hint;
    this.status = status;
  }
}

/** Ask for JSON. `params` whose value is empty are left out. */
export async function get(path, params = {}, { signal } = {}) {
  let response;
  try {
    response = await fetch(at(`${path}${query(params)}`), { signal, headers: { accept: "application/json" } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(
      "The dashboard's server does not answer.",
      "It may have been stopped; this page tries again by itself.",
    );
  }
  const body = await response.json().catch(() => ({}));
  if (response.status === 401 && body.hint?.startsWith("log in at ")) logIn(); // a session that has ended
  if (!response.ok)
    throw new ApiError(body.error ?? `The server answered ${response.status}.`, body.hint ?? "", response.status);
  return body;
}

/** Write parameters as a query, "" if there are none. */
export function query(params) {
  const search = new URLSearchParams(
    Object.entries(params).filter(([, value]) => value !== "" && value !== null && value !== undefined),
  );
  return search.size ? `?${search}` : "";
}

/** Write a path whose segments may hold anything, also "/". */
export const pathOf = (...segments) => `/${segments.map((segment) => encodeURIComponent(guarded(segment))).join("/")}`;

// A browser resolves the segments "." and "..", encoded ones too: such an id stands behind a "~", and an id that looks
// like that behind one more. heartwheel/dashboard/paths.py reads the same.
const guarded = (segment) => (/^~*\.{1,2}$/.test(segment) ? `~${segment}` : segment);

/** Read a decoded segment of a path that `pathOf` has written. */
export const segmentOf = (text) => (/^~+\.{1,2}$/.test(text) ? text.slice(1) : text);
